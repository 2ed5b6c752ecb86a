"""Python beside a driver that has none: it attaches the lakes of the configuration."""
