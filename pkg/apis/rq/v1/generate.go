package v1

// generateEmbeddedObjectMeta keeps the labels and annotations of a Run's template, which are pruned otherwise.

//go:generate ../../../../bin/controller-gen object paths=.
//go:generate ../../../../bin/controller-gen crd:generateEmbeddedObjectMeta=true paths=. output:crd:dir=../../../../manifests/crd
//go:generate go run ../../../../manifests/crd/podtemplate ../../../../manifests/crd/rq.davidlangworthy.io_runs.yaml
