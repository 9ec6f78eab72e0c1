package integration

import (
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// attemptsOddly are pods that nobody can refuse, which say what no pod means: they stay Pending and are told why,
// each by a name of its own.
func attemptsOddly() (rows []attempt) {
	odd := func(name, try, metadata, spec string, says ...string) {
		rows = append(rows, attempt{by: "tenant", try: "a pod of others with " + try,
			how:      creates(foreignText(name, metadata, spec)),
			harmless: "it stays Pending, and is told: " + strings.Join(says, " … "),
			after: func(h *hostile) error {
				texts := make([]string, len(says))
				for i, text := range says {
					texts[i] = h.fill(text)
				}
				return told(name, texts...)(h)
			}})
	}
	says := func(annotation, value string) string {
		return "annotations: {" + rqv1.AnnotationOwner + ": '$TEAM', " + annotation + ": " + value + "}"
	}
	const owned = "annotations: {" + rqv1.AnnotationOwner + ": "
	long := strings.Repeat("a", 200000)
	odd("of-next", "the owner of another team", owned+"'$NEXT'}", with("1"), "may not spend as $NEXT")
	odd("of-org", "the owner above", owned+"'$ORG'}", with("1"), "may not spend as $ORG")
	odd("of-star", "a wildcard for an owner", owned+"'*'}", with("1"), "which is not an owner")
	odd("of-upper", "an owner in upper case", owned+"ORG}", with("1"), "which is not an owner")
	odd("of-long", "an owner of 200,000 letters", owned+"'A"+long+"'}", with("1"), "which is not an owner")
	odd("of-wide", "an owner of letters that are written in many", owned+`"`+strings.Repeat("\\U000E0001", 30000)+`"}`,
		with("1"), "which is not an owner")
	odd("in-long", "a group of 200,000 letters", says(rqv1.AnnotationGroup, long), with("1"), "Group/aaa")
	odd("spares-many", "more spares than a number has", says(rqv1.AnnotationSpares, "'2147483648'"), with("1"),
		"not a number of GPUs")
	odd("spares-less", "-1 spares", says(rqv1.AnnotationSpares, "'-1'"), with("1"), "not a number of GPUs")
	odd("width-many", "a width beyond its own", says(rqv1.AnnotationMinWidth, "'1000'"), with("1"), "more than the 1 GPUs")
	odd("width-long", "a width of 100,000 digits", says(rqv1.AnnotationMinWidth, "'"+strings.Repeat("9", 100000)+"'"),
		with("1"), "not a number of GPUs")
	odd("lasts-over", "a maxDuration beyond 292 years", says(rqv1.AnnotationMaxDuration, "9999999h"), with("1"),
		"not a duration")
	odd("lasts-less", "a negative maxDuration", says(rqv1.AnnotationMaxDuration, "'-1h'"), with("1"), "not a duration")
	odd("saves-none", "a checkpoint of nothing", says(rqv1.AnnotationCheckpoint, "0s"), with("1"), "not a duration")
	odd("type-none", "a GPU type that there is not", says(rqv1.AnnotationGPUType, "none"), with("1"), "and the fleet has")
	odd("group-part", "groups of half a pod", says(rqv1.AnnotationGroupGPUs, "'1'"), with("2"),
		"not a multiple of the 2 GPUs")
	odd("job-none", "the words of a Job that there is not", "labels: {batch.kubernetes.io/job-name: none, "+
		"batch.kubernetes.io/job-completion-index: '0'}", with("1"), "Job/none", "does not exist in namespace $NS")
	odd("job-huge", "an index beyond all numbers", "labels: {batch.kubernetes.io/job-name: none, "+
		"batch.kubernetes.io/job-completion-index: '99999999999999999999'}", with("1"), "does not exist")
	odd("volcano", "the words of Volcano", says("scheduling.k8s.io/group-name", "other"), with("1"), "does not read")
	odd("many", "more GPUs than a node may have", owned+"'$TEAM'}", with("100000"), "a node may have 1024 at most")
	odd("thief", "a service account that may not spend, in the team's group", says(rqv1.AnnotationGroup, "theirs"),
		"serviceAccountName: thief, "+with("4"), "may not spend as $TEAM")
	odd("larger", "more GPUs than each of the team's group has", says(rqv1.AnnotationGroup, "theirs"), with("8"), "4")
	return rows
}
