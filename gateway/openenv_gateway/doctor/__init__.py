"""What `openenv-gateway doctor` looks at: the machine, the Docker engine, what dead gateways left, and real launches."""
