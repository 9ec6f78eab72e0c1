package sbatch

import (
	"path"
	"regexp"
	"strings"
)

const ownerRule = "an owner is a path of lower-case names joined by colons, such as org:ai:rai"

// longestName is the longest name that a Run may have.
const longestName = 52

// notInNames matches what a name may not have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf makes a name for a Run of a job's; empty if there is nothing to make it of.
func nameOf(job string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(job), "-"), "-")
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "run-" + name
	}
	return strings.TrimRight(name[:min(len(name), longestName)], "-")
}

// NameOfFile is the name of a job whose script is in a file, and says none.
func NameOfFile(file string) string {
	return strings.TrimSuffix(path.Base(file), path.Ext(file))
}
