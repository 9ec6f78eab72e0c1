//go:build counters

package main

import _ "github.com/davidlangworthy/jobtree/test/counters"
