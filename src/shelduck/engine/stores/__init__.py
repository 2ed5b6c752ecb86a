"""How object stores are reached: settings, by Python and by Spark alike."""
