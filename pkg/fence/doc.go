// Package fence keeps a process that does not lead from changing anything through the API server.
package fence
