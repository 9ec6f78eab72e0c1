// Package picture is what people look at: the fleet GPU by GPU, time behind and ahead, money, and what waits. The
// command line and the web page draw from it. It is pure: objects and an instant in, plain data out.
package picture
