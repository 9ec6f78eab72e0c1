// Package forecast says when and where a Run can start: without anybody being cut, from what is known to end or to
// open, and else by which cuts (R17 to R19). It is pure. It tries the future out on the fleet and the accounts that it
// is given, and leaves them as they were.
package forecast
