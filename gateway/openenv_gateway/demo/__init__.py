"""A small environment that ships with the gateway: noughts and crosses, served as any OpenEnv environment is.

`python -m openenv_gateway.demo --port N` runs it. It needs no Docker, no network and none of the gateway's other rooms, so
that it starts as fast as an interpreter can, and the gateway treats it as any other server.
"""
