"""What goes on inside the replicas, from a request's dispatch to the end of its service. One law a file."""
