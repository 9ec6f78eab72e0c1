// Package config holds the arguments of the Jobtree plugin: everything that an operator may set.
package config
