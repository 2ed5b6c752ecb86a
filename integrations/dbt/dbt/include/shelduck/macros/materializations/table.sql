{% materialization table, adapter='shelduck', supported_languages=['sql'] %}
  {%- set old_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}
  {% do shelduck_make_way(old_relation, 'table') %}
  {% call statement('main') -%}
    {{ get_create_table_as_sql(False, target_relation, compiled_code) }}
  {%- endcall %}
  {% do apply_grants(target_relation, config.get('grants')) %}
  {% do persist_docs(target_relation, model) %}
  {% do persist_constraints(target_relation, model) %}
  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}

{# A clone is a view, as dbt makes it where a database cannot clone. #}
{% materialization clone, adapter='shelduck' %}
  {{ return(dbt.materialization_clone_default()) }}
{% endmaterialization %}

{% macro shelduck__can_clone_table() %}
  {{ return(false) }}
{% endmacro %}
