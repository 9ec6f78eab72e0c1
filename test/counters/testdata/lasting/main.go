// Lasting says what is not the same each time, and lasts until it is killed.
package main

import (
	"fmt"
	"os"

	_ "github.com/davidlangworthy/jobtree/test/counters"
)

func main() {
	if len(os.Args) > 5 {
		neverCovered()
	}
	covered()
	select {}
}

func covered() { fmt.Println("covered") }

func neverCovered() { fmt.Println("not covered") }
