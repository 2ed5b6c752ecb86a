"""Maintenance of the catalog: audits, expiry, sweeps, migrations, options; it makes no snapshot."""
