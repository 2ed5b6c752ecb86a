{# What a lake has #}

{% macro shelduck_list(kind, schema_relation) %}
  {% call statement('shelduck_list', fetch_result=True) -%}
    show {{ kind }} in {{ schema_relation.without_identifier() }}
  {%- endcall %}
  {% do return(load_result('shelduck_list').table) %}
{% endmacro %}

{% macro shelduck_describe(relation, extended=false) %}
  {% call statement('shelduck_describe', fetch_result=True) -%}
    describe {{ 'extended' if extended }} {{ relation }}
  {%- endcall %}
  {% do return(load_result('shelduck_describe').table) %}
{% endmacro %}

{% macro shelduck__get_columns_in_relation_raw(relation) -%}
  {% do return(shelduck_describe(relation)) %}
{% endmacro %}

{# How it is made #}

{% macro shelduck__file_format_clause() %}
  {%- set format = config.get('file_format') -%}
  {%- if format not in [none, 'shelduck', 'parquet', 'delta', 'iceberg'] -%}
    {{ exceptions.raise_compiler_error("a table of a lake cannot have the file_format '" ~ format ~ "'; leave it out") }}
  {%- endif -%}
{% endmacro %}

{% macro shelduck__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    create or replace temporary view {{ relation }} as
    {{ compiled_code }}
  {%- else -%}
    create or replace table {{ relation }}
    {%- if config.get('contract').enforced %}
      {{ get_assert_columns_equivalent(compiled_code) }}
      {%- set compiled_code = get_select_subquery(compiled_code) %}
    {%- endif %}
    {{ file_format_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ clustered_cols(label="clustered by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
    as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro %}

{# DuckLake keeps no comments of the columns of views. #}
{% macro shelduck__create_view_as(relation, sql) -%}
  create or replace view {{ relation }}
  {{ comment_clause() }}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  as
    {{ sql }}
{% endmacro %}

{% macro shelduck__create_csv_table(model, agate_table) %}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {%- set quotes = model['config'].get('quote_columns', None) -%}
  {% set sql %}
    create or replace table {{ this.render() }} (
      {%- for name in agate_table.column_names %}
      {{ adapter.quote_seed_column(name | string, quotes) }} {{ overrides.get(name, adapter.convert_type(agate_table, loop.index0)) }}{{ ', ' if not loop.last }}
      {%- endfor %}
    )
    {{ file_format_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ comment_clause() }}
  {% endset %}
  {% call statement('_') -%}{{ sql }}{%- endcall %}
  {{ return(sql) }}
{% endmacro %}

{% macro shelduck__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {% do shelduck_make_way(old_relation, 'table') %}
  {{ return(create_csv_table(model, agate_table)) }}
{% endmacro %}

{# A seed is one INSERT for some thousand rows. The type of a column is asked for once, because dbt
   looks at all of its values to tell it. #}
{% macro shelduck__load_csv_rows(model, agate_table) %}
  {%- set overrides = model['config'].get('column_types', {}) -%}
  {%- set places = [] -%}
  {%- for name in agate_table.column_names -%}
    {%- set type = overrides.get(name, adapter.convert_type(agate_table, loop.index0)) -%}
    {%- do places.append("cast(" ~ get_binding_char() ~ " as " ~ type ~ ")") -%}
  {%- endfor -%}
  {%- set line = "(" ~ places | join(", ") ~ ")" -%}
  {%- set statements = [] -%}
  {%- for rows in agate_table.rows | batch(get_batch_size()) -%}
    {%- set values = [] -%}
    {%- for row in rows -%}{%- do values.extend(row) -%}{%- endfor -%}
    {%- set sql = "insert into " ~ this.render() ~ " values " ~ ([line] * rows | length) | join(", ") -%}
    {%- do adapter.add_query(sql, bindings=values, abridge_sql_log=True) -%}
    {%- do statements.append(sql) -%}
  {%- endfor -%}
  {{ return(statements[0] if statements else '') }}
{% endmacro %}

{# Tables replace tables in one commit. Only what is of another kind goes first. #}
{% macro shelduck_make_way(old_relation, kind) %}
  {% if old_relation is not none and old_relation.type != kind %}
    {% do adapter.drop_relation(old_relation) %}
  {% endif %}
{% endmacro %}

{# All of a table's changes are one statement, and so one commit. #}
{% macro shelduck_alter(relation, clauses) %}
  {% if clauses %}
    {% do run_query("alter table " ~ relation ~ " " ~ clauses | join(", ")) %}
  {% endif %}
{% endmacro %}

{# What is said about it #}

{% macro shelduck_text(text) -%}
  {{ return("'" ~ text | replace("\\", "\\\\") | replace("'", "\\'") ~ "'") }}
{%- endmacro %}

{% macro shelduck__alter_relation_comment(relation, comment) %}
  {% call statement() -%}
    comment on {{ relation.type or 'table' }} {{ relation }} is {{ shelduck_text(comment) }}
  {%- endcall %}
{% endmacro %}

{% macro shelduck__persist_docs(relation, model, for_relation=true, for_columns=true) -%}
  {% if for_relation and config.persist_relation_docs() and model.description %}
    {% do alter_relation_comment(relation, model.description) %}
  {% endif %}
  {% if for_columns and config.persist_column_docs() and model.columns and relation.type != 'view' %}
    {% set known = adapter.get_columns_in_relation(relation) | map(attribute='name') | list %}
    {% do alter_column_comment(relation, validate_doc_columns(relation, model.columns, known)) %}
  {% endif %}
{% endmacro %}

{% macro shelduck__alter_column_comment(relation, column_dict) %}
  {% set clauses = [] %}
  {% for name in column_dict if column_dict[name]['description'] %}
    {% set text = shelduck_text(column_dict[name]['description']) %}
    {% do clauses.append("alter column " ~ adapter.quote(name) ~ " comment " ~ text) %}
  {% endfor %}
  {% do shelduck_alter(relation, clauses) %}
{% endmacro %}

{# A contract: types are compared before the table is made, and NULL is refused by the table. #}
{% macro shelduck__persist_constraints(relation, model) %}
  {% if config.get('contract').enforced %}
    {% set clauses = [] %}
    {% for name in model.columns %}
      {% for constraint in model.columns[name]['constraints'] if constraint.type == 'not_null' %}
        {% set quoted = adapter.quote(name) if model.columns[name]['quote'] else name %}
        {% do clauses.append("alter column " ~ quoted ~ " set not null") %}
      {% endfor %}
    {% endfor %}
    {% do shelduck_alter(relation, clauses) %}
  {% endif %}
{% endmacro %}

{% macro shelduck__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {% set clauses = [] %}
  {% for column in add_columns or [] %}
    {% do clauses.append("add column " ~ column.quoted ~ " " ~ column.data_type) %}
  {% endfor %}
  {% for column in remove_columns or [] %}
    {% do clauses.append("drop column " ~ column.quoted ~ " cascade") %}
  {% endfor %}
  {% do shelduck_alter(relation, clauses) %}
{% endmacro %}

{# Who may do what #}

{% macro shelduck__apply_grants(relation, grant_config, should_revoke=True) %}
  {% if grant_config %}
    {{ exceptions.raise_compiler_error("Shelduck has no grants, so the grants of " ~ relation ~ " cannot be applied; give rights on the catalog's database and on the folder of the files") }}
  {% endif %}
{% endmacro %}
