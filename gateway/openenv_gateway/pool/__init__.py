"""Which environment server, and which room on it, a lane gets: launching, leasing, learning capacity, stopping."""
