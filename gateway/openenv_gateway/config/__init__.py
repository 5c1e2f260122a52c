"""Settings from the command line and from a file: read once, checked whole, all faults told together."""
