module github.com/davidlangworthy/jobtree/tools/mutants

go 1.26.0

require github.com/google/go-cmp v0.7.0
