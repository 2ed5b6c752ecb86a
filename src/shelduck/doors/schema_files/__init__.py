"""Schema as code: a lake as files of SQL, and the plan back; only `SchemaPlan.apply` commits."""
