package integration

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// refusedAttempts are those that the API server refuses, by whatever rule.
func refusedAttempts() []attempt {
	return slices.Concat(attemptsOnSpending(), attemptsOnShapes(), attemptsOnTemplates(), attemptsOnStandingRuns(),
		attemptsOnPods(), attemptsOnTheLedger(), attemptsOnMoney(), attemptsOnRights())
}

// mayNotSpend is what who spends as an owner that is none of his is told.
func mayNotSpend(user, owner string) []string {
	return []string{"spec.owner: user " + user + " may not spend as " + owner + " in namespace $NS",
		"name an owner of yours, or ask an administrator"}
}

const ownerIsAPath = "owner must be a path of lower-case names joined by colons, such as org:ai:rai:sys"

func attemptsOnSpending() []attempt {
	as := func(owner string) how { return specs("{owner: " + quoted(owner) + "}") }
	return []attempt{
		{by: "tenant", try: "a Run that spends as another team", how: as("$NEXT"), refused: mayNotSpend("tenant", "$NEXT")},
		{by: "tenant", try: "a Run that spends as the team above", how: as("$ORG"), refused: mayNotSpend("tenant", "$ORG")},
		{by: "tenant", try: "a Run that spends as a team below", how: as("$TEAM:sub"),
			refused: mayNotSpend("tenant", "$TEAM:sub")},
		{by: "tenant", try: "a Run that spends as an owner that begins with the team's name", how: as("$TEAMx"),
			refused: mayNotSpend("tenant", "$TEAMx")},
		{by: "tenant", try: "the team's name in upper case", how: as("ORG:Team"),
			refused: []string{"spec.owner", ownerIsAPath}},
		{by: "tenant", try: "the team's name with a letter of another alphabet", how: as("org:te\u0430m"),
			refused: []string{"spec.owner", ownerIsAPath}},
		{by: "tenant", try: "the team's name with a line end", how: as("$TEAM\n"),
			refused: []string{"spec.owner", ownerIsAPath}},
		{by: "tenant", try: "the team's name with a wildcard", how: as("$ORG:*"),
			refused: []string{"spec.owner", ownerIsAPath}},
		{by: "tenant", try: "no name at all", how: as(""), refused: []string{"spec.owner"}},
		{by: "tenant", try: "a name of 100,000 letters", how: as(strings.Repeat("a", 100000)),
			refused: []string{"spec.owner", "Too long"}},
		{by: "editor", try: "a Run of the team, without use of its owner", how: runs("{}"),
			refused: mayNotSpend("editor", "$TEAM")},
		{by: "pauper", try: "a Run of the team, with use of another owner", how: runs("{}"),
			refused: mayNotSpend("pauper", "$TEAM")},
		{by: "viewer", try: "a Run of the team", how: runs("{}"),
			refused: []string{`User "viewer" cannot create resource "runs"`}},
		{by: "stranger", try: "a Run of the team", how: runs("{}"),
			refused: []string{`User "stranger" cannot create resource "runs"`}},
		{by: "tenant", try: "a Run in the scheduler's namespace", how: runs("{metadata: {namespace: jobtree-system}}"),
			refused: []string{`cannot create resource "runs"`, `in the namespace "jobtree-system"`}},
		{by: "tenant", try: "a Run in kube-system", how: runs("{metadata: {namespace: kube-system}}"),
			refused: []string{`cannot create resource "runs"`, `in the namespace "kube-system"`}},
		{by: "tenant", try: "its own owner as a sponsor", how: specs(`{funding: {allowBorrow: true, sponsors: ["$TEAM"]}}`),
			refused: []string{"spec.funding.sponsors", "may not be a sponsor: its envelopes pay first anyway"}},
		{by: "tenant", try: "a sponsor without allowBorrow",
			how:     specs(`{funding: {allowBorrow: false, sponsors: ["$NEXT"]}}`),
			refused: []string{"spec.funding.sponsors", "need funding.allowBorrow: true"}},
		{by: "tenant", try: "a sponsor listed twice",
			how:     specs(`{funding: {allowBorrow: true, sponsors: ["$NEXT", "$NEXT"]}}`),
			refused: []string{"spec.funding.sponsors", "only once"}},
		{by: "tenant", try: "33 sponsors",
			how:     specs(fmt.Sprintf(`{funding: {allowBorrow: true, sponsors: [%s"a"]}}`, strings.Repeat(`"a",`, 32))),
			refused: []string{"spec.funding.sponsors", "Too many", "32"}},
		{by: "tenant", try: "a wildcard as a sponsor", how: specs(`{funding: {allowBorrow: true, sponsors: ["*"]}}`),
			refused: []string{"spec.funding.sponsors", "must be owners: paths of lower-case names joined by colons"}},
	}
}

func attemptsOnShapes() []attempt {
	rows := []attempt{}
	add := func(try, spec string, refused ...string) {
		rows = append(rows, attempt{by: "tenant", try: try, how: specs(spec), refused: refused})
	}
	add("pods of 0 GPUs", "{resources: {gpusPerPod: 0}}", "spec.resources.gpusPerPod", "greater than or equal to 1")
	add("pods of -8 GPUs", "{resources: {gpusPerPod: -8}}", "spec.resources.gpusPerPod", "greater than or equal to 1")
	add("pods of 2,147,483,648 GPUs", "{resources: {gpusPerPod: 2147483648}}", "spec.resources.gpusPerPod",
		"less than or equal to 1024")
	add("0 GPUs", "{resources: {totalGPUs: 0}}", "spec.resources.totalGPUs", "greater than or equal to 1")
	add("10,000,000 GPUs", "{resources: {totalGPUs: 10000000}}", "spec.resources.totalGPUs",
		"less than or equal to 1000000")
	add("one and a half GPUs", "{resources: {totalGPUs: 1.5}}", "spec.resources.totalGPUs", "must be of type integer")
	add("pods that do not divide the total", "{resources: {totalGPUs: 8, gpusPerPod: 3}}", "spec.resources",
		"must be a multiple of resources.gpusPerPod")
	add("groups that do not divide the total", "{locality: {groupGPUs: 3}}", "spec.locality.groupGPUs",
		"must be a multiple of locality.groupGPUs")
	add("groups of -8 GPUs", "{locality: {groupGPUs: -8}}", "spec.locality.groupGPUs", "greater than or equal to 1")
	add("more spares than a group has GPUs", "{sparesPerGroup: 16}", "spec.sparesPerGroup",
		"may not exceed the GPUs of a group")
	add("two numbers of spares", "{sparesPerGroup: 4, spares: 8}", "spec.spares",
		"are two names of one field and differ: set one of them")
	add("a step of 0", "{malleable: {minTotalGPUs: 8, maxTotalGPUs: 8, stepGPUs: 0}}", "spec.malleable.stepGPUs",
		"greater than or equal to 1")
	add("a least width above the most", "{malleable: {minTotalGPUs: 16, maxTotalGPUs: 8, stepGPUs: 8}}",
		"spec.malleable.minTotalGPUs", "must be at most malleable.maxTotalGPUs")
	add("a total below the least width", "{malleable: {minTotalGPUs: 16, maxTotalGPUs: 32, stepGPUs: 8}}",
		"spec.resources.totalGPUs", "must be malleable.minTotalGPUs plus whole steps")
	add("an opportunistic Run with spares", "{opportunistic: true, sparesPerGroup: 8}", "spec.opportunistic",
		"may not have spares")
	add("a GPU type with a slash", "{resources: {gpuType: ../../etc}}", "spec.resources.gpuType",
		"must be a valid label value")
	add("a GPU type with a line end", `{resources: {gpuType: "H100\n"}}`, "spec.resources.gpuType",
		"must be a valid label value")
	const duration = "must be a positive duration in hours, minutes and seconds, such as 10m, 1h30m or, for 3 days, 72h"
	add("a negative maxDuration", "{runtime: {maxDuration: -1h}}", "spec.runtime.maxDuration", duration)
	add("a maxDuration of nothing", "{runtime: {maxDuration: 0s}}", "spec.runtime.maxDuration", duration)
	add("a maxDuration in years", "{runtime: {maxDuration: 1y}}", "spec.runtime.maxDuration", duration)
	add("a maxDuration in digits of another alphabet", `{runtime: {maxDuration: "\u0661h"}}`, "spec.runtime.maxDuration",
		duration)
	add("a maxDuration beyond 292 years", "{runtime: {maxDuration: 9999999h}}", "spec.runtime.maxDuration", duration)
	add("a negative checkpoint", "{runtime: {checkpoint: -1ns}}", "spec.runtime.checkpoint", duration)
	return append(rows,
		attempt{by: "tenant", try: "a name of 53 letters, whose pods' names would not fit",
			how:     runs("{metadata: {name: " + strings.Repeat("a", 53) + "}}"),
			refused: []string{"metadata.name", "52"}},
		attempt{by: "tenant", try: "a name with a dot, which no Service may have", how: runs("{metadata: {name: a.b}}"),
			refused: []string{"metadata.name"}},
		attempt{by: "tenant", try: "a generated name whose beginning is too long",
			how:     runs("{metadata: {name: null, generateName: " + strings.Repeat("a", 53) + "-}}"),
			refused: []string{"metadata.name", "52"}},
	)
}

func attemptsOnTemplates() []attempt {
	rows := []attempt{}
	add := func(try, template string, refused ...string) {
		rows = append(rows, attempt{by: "tenant", try: try, how: templates(template), refused: refused})
	}
	gpus := func(resources string) string {
		return "{spec: {containers: [{name: main, image: pause, resources: " + resources + "}]}}"
	}
	const ours = "may hold none under rq.davidlangworthy.io/, because jobtree sets them; leave them out"
	const annotations = "may hold none under rq.davidlangworthy.io/, because jobtree sets them; leave"
	add("a template whose pods replace a lost rank, on a node and from a Budget of its choice",
		`{metadata: {annotations: {rq.davidlangworthy.io/replaces:
		'{"spareUID":"zz","node":"$NODE","budget":"$NS-next","envelope":"all","relation":"own"}'}}}`,
		"spec.template.metadata.annotations", annotations)
	add("any other annotation of ours in a template", "{metadata: {annotations: {rq.davidlangworthy.io/owner: a}}}",
		"spec.template.metadata.annotations", annotations)
	add("a template whose pods are another Run's", "{metadata: {labels: {rq.davidlangworthy.io/run: neighbour}}}",
		"spec.template.metadata.labels", ours)
	add("a label of ours that there is none of", "{metadata: {labels: {rq.davidlangworthy.io/x: a}}}",
		"spec.template.metadata.labels", ours)
	add("pods for another scheduler", "{spec: {schedulerName: default-scheduler}}", "spec.template.spec.schedulerName",
		"must be jobtree or left out")
	add("pods on a node of its choice", "{spec: {nodeName: $NODE}}", "spec.template.spec.nodeName",
		"must be left out, because jobtree chooses the node")
	add("pods that never end", "{spec: {restartPolicy: Always}}", "spec.template.spec.restartPolicy",
		"must be Never or OnFailure")
	add("pods that hold the gang's GPUs behind a gate", "{spec: {schedulingGates: [{name: mine}]}}",
		"spec.template.spec.schedulingGates", "must be left out")
	add("pods that stay when they are told to go", "{metadata: {finalizers: [example.com/mine]}}",
		"spec.template.metadata.finalizers", "must be left out")
	add("no container", "{spec: {containers: []}}", "spec.template.spec.containers", "needs a container")
	add("GPUs for an init container",
		"{spec: {initContainers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 8}}}]}}",
		"spec.template.spec.initContainers", "may not ask for nvidia.com/gpu; put it in the limits of containers")
	add("GPUs for a sidecar", "{spec: {initContainers: [{name: a, image: b, restartPolicy: Always, resources: "+
		"{requests: {nvidia.com/gpu: 8}}}]}}",
		"spec.template.spec.initContainers", "may not ask for nvidia.com/gpu; put it in the limits of containers")
	const away = "{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
		"[{topologyKey: fabric.domain, labelSelector: {}, %s}]}}}}"
	for _, c := range [][2]string{{"those of all namespaces", "namespaceSelector: {}"},
		{"those of the scheduler's namespace", "namespaces: [jobtree-system]"}} {
		add("pods that keep others away, "+c[0], fmt.Sprintf(away, c[1]),
			"spec.template.spec.affinity.podAntiAffinity may not require pods of other namespaces to keep away")
	}
	const whole = "must give nvidia.com/gpu in limits, as a whole number up to 9999; in requests it may only " +
		"repeat the limit"
	add("GPUs in requests alone", gpus("{requests: {nvidia.com/gpu: 8}}"), "spec.template.spec.containers", whole)
	add("half a GPU", gpus("{limits: {nvidia.com/gpu: 500m}}"), "spec.template.spec.containers", whole)
	add("-8 GPUs", gpus("{limits: {nvidia.com/gpu: -8}}"), "spec.template.spec.containers", whole)
	add("GPUs as a power of ten", gpus("{limits: {nvidia.com/gpu: '1e1'}}"), "spec.template.spec.containers", whole)
	add("fewer GPUs in requests than in limits", gpus("{limits: {nvidia.com/gpu: 8}, requests: {nvidia.com/gpu: 1}}"),
		"spec.template.spec.containers", whole)
	add("pods of more GPUs than divide the total", gpus("{limits: {nvidia.com/gpu: 16}}"), "spec.template",
		"must divide totalGPUs")
	add("a quantity that Go cannot read", gpus("{limits: {cpu: 1e999}}"),
		"spec.template.spec.containers[0].resources.limits")
	return append(rows, attempt{by: "tenant", try: "pods of 8 GPUs that are charged as pods of 1",
		how: specs("{resources: {gpusPerPod: 1}, template: " + gpus("{limits: {nvidia.com/gpu: 8}}") + "}"),
		refused: []string{"spec.resources.gpusPerPod is 1 but the limits in spec.template ask for 8",
			"make them equal or leave one out"}})
}

func attemptsOnStandingRuns() []attempt {
	rows := []attempt{}
	const mine, waits = "rq.davidlangworthy.io/v1/Run $NS mine", "rq.davidlangworthy.io/v1/Run $NS waits"
	pending := []string{"spec", "owner and funding may change only while the Run is Pending: delete the Run and create " +
		"a new one"}
	add := func(try, changes string, refused ...string) {
		rows = append(rows, attempt{by: "tenant", try: "to a Run that runs: " + try, how: patches(mine, changes),
			refused: refused})
	}
	add("another team as its owner", `{spec: {owner: "$NEXT"}}`, pending...)
	add("a larger total", "{spec: {resources: {totalGPUs: 16}}}", "spec.resources",
		"is fixed once a Run is created: delete the Run and create a new one")
	add("smaller pods", "{spec: {resources: {gpusPerPod: 1}}}", "spec.resources", "is fixed once a Run is created")
	add("groups", "{spec: {locality: {groupGPUs: 4}}}", "spec.locality", "is fixed once a Run is created")
	add("spares", "{spec: {sparesPerGroup: 4}}", "spec.sparesPerGroup", "is fixed once a Run is created")
	add("a range of widths", "{spec: {malleable: {minTotalGPUs: 8, maxTotalGPUs: 800, stepGPUs: 8}}}", "spec.malleable",
		"is fixed once a Run is created")
	add("free GPUs, as an opportunistic Run has them", "{spec: {opportunistic: true}}", "spec.opportunistic",
		"is fixed once a Run is created")
	add("a template", "{spec: {template: {spec: {containers: [{name: a, image: b}]}}}}",
		"spec.template is fixed once a Run is created")
	add("sponsors", `{spec: {funding: {allowBorrow: true, sponsors: ["$NEXT"]}}}`, pending...)
	add("a deadline for its ranks", "{spec: {runtime: {startupDeadline: 999999h}}}", "spec.runtime",
		"once the Run has started, runtime.maxDuration may only be set or shortened, runtime.checkpoint only be set, and "+
			"runtime.onTimeout be changed")
	return append(rows,
		attempt{by: "tenant", try: "to a Run that runs: a template, by server-side apply with force",
			how: patchesWith(types.ApplyPatchType, mine,
				"{apiVersion: rq.davidlangworthy.io/v1, kind: Run, spec: {template: {metadata: {annotations: "+
					"{rq.davidlangworthy.io/replaces: '{}'}}, spec: {containers: [{name: a, image: b}]}}}}"),
			refused: []string{"spec.template is fixed once a Run is created"}},
		attempt{by: "tenant", try: "to a Run that runs: another owner, by JSON patch",
			how: patchesWith(types.JSONPatchType, mine,
				`[{op: replace, path: /spec/owner, value: "$NEXT"}]`), refused: pending},
		attempt{by: "tenant", try: "to a Run that waits: another team as its owner",
			how: patches(waits, `{spec: {owner: "$NEXT"}}`), refused: mayNotSpend("tenant", "$NEXT")},
		attempt{by: "pauper", try: "to another's Run that waits: its own owner",
			how: patches(waits, `{spec: {owner: "$ORG:poor"}}`),
			refused: []string{"spec", "user pauper may not change a Run that spends as $TEAM",
				"have one of its team change it"}},
		attempt{by: "editor", try: "to another's Run that waits: a maxDuration",
			how: patches(waits, "{spec: {runtime: {maxDuration: 1s}}}"),
			refused: []string{"spec", "user editor may not change a Run that spends as $TEAM",
				"have one of its team change it"}},
		attempt{by: "editor", try: "to another's Run that runs: an end",
			how: patches(mine, "{spec: {runtime: {maxDuration: 1s}}}"),
			refused: []string{"spec", "user editor may not change a Run that spends as $TEAM",
				"have one of its team change it"}},
		attempt{by: "viewer", try: "to another's Run: a label", how: patches(mine, "{metadata: {labels: {a: b}}}"),
			refused: []string{`User "viewer" cannot patch resource "runs"`}},
		attempt{by: "viewer", try: "deleting another's Run", how: deletes(mine),
			refused: []string{`User "viewer" cannot delete resource "runs"`}},
		attempt{by: "stranger", try: "deleting all Runs of a namespace", how: deletes("rq.davidlangworthy.io/v1/Run $NS"),
			refused: []string{`User "stranger" cannot deletecollection resource "runs"`}},
		attempt{by: "tenant", try: "the status of its Run", how: patches("status of "+mine, "{status: {phase: Pending}}"),
			refused: []string{`User "tenant" cannot patch resource "runs/status"`}},
		attempt{by: "chief", try: "the status of a Run", how: patches("status of "+mine, "{status: {phase: Completed}}"),
			refused: []string{`User "chief" cannot patch resource "runs/status"`}},
		attempt{by: "root", try: "the status of a Run", how: patches("status of "+mine, "{status: {phase: Completed}}"),
			refused: []string{"only the scheduler", "runs.rq.davidlangworthy.io/status"}},
	)
}
