{# As for all databases: dbt on Spark asks for a file format, which a lake has not. #}
{% materialization snapshot, adapter='shelduck' %}
  {{ return(dbt.materialization_snapshot_default()) }}
{% endmaterialization %}

{% macro shelduck__get_or_create_relation(database, schema, identifier, type) %}
  {%- set found = adapter.get_relation(database=none, schema=schema, identifier=identifier) -%}
  {%- if found -%}
    {% do return([true, found]) %}
  {%- endif -%}
  {% do return([false, api.Relation.create(schema=schema, identifier=identifier, type=type)]) %}
{% endmacro %}

{% macro shelduck__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ default__snapshot_merge_sql(target, source, insert_cols) }}
{%- endmacro %}

{% macro shelduck__create_columns(relation, columns) %}
  {% do shelduck__alter_relation_add_remove_columns(relation, columns, none) %}
{% endmacro %}

{% macro shelduck__post_snapshot(staging_relation) %}
  {% call statement() -%} drop view if exists {{ staging_relation }} {%- endcall %}
{% endmacro %}
