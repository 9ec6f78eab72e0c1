// Package texts collects every text that people can meet, so that it can be read, and kept, as one.
package texts
