package cli

import (
	"fmt"
	"strings"
)

// read decodes every document of every file. Its error lists the problems of all of them.
func (s *submission) read() ([]entry, error) {
	files, err := expand(s.paths, s.recursive)
	if err != nil {
		return nil, err
	}
	var entries []entry
	var problems []string
	for _, file := range files {
		documents, err := readDocuments(file, s.In)
		if err != nil {
			return nil, err
		}
		for _, d := range documents {
			objects, err := decode(d)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%v: %v", d, err))
			}
			for _, object := range objects {
				entries = append(entries, entry{from: d, object: object})
			}
		}
	}
	if len(problems) > 0 {
		return nil, fail(exitError, "%s\nNothing was created.", strings.Join(problems, "\nError: "))
	}
	if len(entries) == 0 {
		return nil, fail(exitError, "there are no objects to submit in %s", strings.Join(s.paths, ", "))
	}
	return entries, nil
}

// setNamespaces gives every namespaced object its namespace; one that -n contradicts is refused.
func setNamespaces(entries []entry, namespace string, explicit bool) error {
	for _, e := range entries {
		own := e.object.GetNamespace()
		switch {
		case e.object.GetKind() == "Budget" && own != "":
			return fail(exitError, "%v: %s: Budgets belong to the cluster; leave metadata.namespace out. Nothing was created.",
				e.from, describe(e.object))
		case e.object.GetKind() == "Budget":
		case own == "":
			e.object.SetNamespace(namespace)
		case explicit && own != namespace:
			return fail(exitError, "%v: %s is in namespace %q, but -n says %q; leave one of them out. Nothing was created.",
				e.from, describe(e.object), own, namespace)
		}
	}
	return nil
}
