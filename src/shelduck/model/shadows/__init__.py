"""The hidden columns of jobs: how values are converted, proven and copied; no I/O."""
