{% materialization incremental, adapter='shelduck', supported_languages=['sql'] -%}
  {%- set strategy = config.get('incremental_strategy') or ('merge' if config.get('unique_key') else 'append') -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set old_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set is_new = old_relation is none or old_relation.is_view or should_full_refresh() -%}
  {% do shelduck_check_strategy(strategy) %}

  {{ run_hooks(pre_hooks) }}
  {% if is_new %}
    {% do shelduck_make_way(old_relation, 'table') %}
    {% call statement('main') -%}
      {{ get_create_table_as_sql(False, target_relation, compiled_code) }}
    {%- endcall %}
    {% do persist_constraints(target_relation, model) %}
  {% else %}
    {% set new_rows = make_temp_relation(this) %}
    {% call statement('new_rows') -%} {{ create_table_as(True, new_rows, compiled_code) }} {%- endcall %}
    {% do shelduck_change_schema(on_schema_change, new_rows, target_relation) %}
    {% if strategy == 'insert_overwrite' %}
      {% set mode = 'dynamic' if config.get('partition_by') else 'static' %}
      {% call statement('mode') -%} set spark.sql.sources.partitionOverwriteMode = {{ mode }} {%- endcall %}
    {% endif %}
    {% call statement('main') -%}
      {{ shelduck_incremental_sql(strategy, new_rows, target_relation) }}
    {%- endcall %}
    {% call statement('forget') -%} drop view if exists {{ new_rows }} {%- endcall %}
  {% endif %}
  {% do apply_grants(target_relation, config.get('grants')) %}
  {% do persist_docs(target_relation, model) %}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization %}

{% macro shelduck_check_strategy(strategy) %}
  {% if strategy not in adapter.valid_incremental_strategies() %}
    {{ exceptions.raise_compiler_error("Invalid incremental strategy provided: " ~ strategy ~ "\n    Expected one of: " ~ adapter.valid_incremental_strategies() | join(', ')) }}
  {% endif %}
  {% if strategy == 'microbatch' and not config.get('event_time') %}
    {{ exceptions.raise_compiler_error("the strategy microbatch needs the config `event_time`") }}
  {% endif %}
{% endmacro %}

{# One ALTER TABLE for all that differs: fields at any depth, wider types, and with
   sync_all_columns whatever else, which readers and writers of the table do not notice. #}
{% macro shelduck_change_schema(how, new_rows, target) %}
  {% if how == 'fail' %}
    {% do process_schema_changes('fail', new_rows, target) %}
  {% elif how != 'ignore' %}
    {% set clauses = adapter.schema_clauses(target, new_rows, how, config.get('heavy', 'job')) %}
    {% if clauses %}
      {% do log("changes " ~ target ~ ": " ~ clauses | join(', '), info=true) %}
      {% do shelduck_alter(target, clauses) %}
    {% endif %}
  {% endif %}
{% endmacro %}

{% macro shelduck_incremental_sql(strategy, new_rows, target) %}
  {%- set given = adapter.get_columns_in_relation(new_rows) | map(attribute='name') | map('lower') | list -%}
  {%- set columns = [] -%}
  {%- for column in adapter.get_columns_in_relation(target) if column.name | lower in given -%}
    {%- do columns.append(column) -%}
  {%- endfor -%}
  {%- set listed = columns | map(attribute='quoted') | join(', ') -%}
  {%- if strategy == 'merge' -%}
    {{ shelduck_merge_sql(new_rows, target, columns) }}
  {%- elif strategy == 'microbatch' -%}
    insert into {{ target }} by name replace where {{ shelduck_batch() }}
    select {{ listed }} from {{ new_rows }}
  {%- elif strategy == 'insert_overwrite' -%}
    insert overwrite {{ target }} {{ partition_cols(label="partition") }} by name
    select {{ listed }} from {{ new_rows }}
  {%- else -%}
    insert into {{ target }} by name
    select {{ listed }} from {{ new_rows }}
  {%- endif -%}
{% endmacro %}

{# The rows of a batch are replaced in one commit. dbt's bounds are UTC, and texts, as in its own filter: a column without a time zone ignores the offset. #}
{% macro shelduck_batch() %}
  {%- set bounds = [] -%}
  {%- set at = adapter.quote(config.get('event_time')) -%}
  {%- if model.batch and model.batch.event_time_start -%}
    {%- do bounds.append(at ~ " >= '" ~ model.batch.event_time_start.strftime('%Y-%m-%d %H:%M:%S') ~ "+00:00'") -%}
  {%- endif -%}
  {%- if model.batch and model.batch.event_time_end -%}
    {%- do bounds.append(at ~ " < '" ~ model.batch.event_time_end.strftime('%Y-%m-%d %H:%M:%S') ~ "+00:00'") -%}
  {%- endif -%}
  {{ return(bounds | join(' and ') or 'true') }}
{% endmacro %}

{% macro shelduck_merge_sql(new_rows, target, columns) %}
  {%- set keys = config.get('unique_key') -%}
  {%- set keys = [keys] if keys is string else (keys or []) -%}
  {%- set conditions = (config.get('predicates') or config.get('incremental_predicates') or []) | list -%}
  {%- for key in keys -%}
    {%- do conditions.append("DBT_INTERNAL_SOURCE." ~ key ~ " = DBT_INTERNAL_DEST." ~ key) -%}
  {%- endfor -%}
  {%- set changed = get_merge_update_columns(config.get('merge_update_columns'), config.get('merge_exclude_columns'), columns) -%}
  {%- set changed = changed or columns | map(attribute='quoted') | list -%}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ new_rows }} as DBT_INTERNAL_SOURCE
  on {{ conditions | join(' and ') if keys else 'false' }}
  when matched then update set
    {% for name in changed -%} DBT_INTERNAL_DEST.{{ name }} = DBT_INTERNAL_SOURCE.{{ name }}{{ ', ' if not loop.last }} {%- endfor %}
  when not matched then insert ({{ columns | map(attribute='quoted') | join(', ') }})
    values ({% for column in columns -%} DBT_INTERNAL_SOURCE.{{ column.quoted }}{{ ', ' if not loop.last }} {%- endfor %})
{% endmacro %}
