"""Models of the lifecycle, and the engines that search them. Nothing here is shipped."""
