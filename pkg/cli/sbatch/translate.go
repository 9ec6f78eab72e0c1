package sbatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Choices are what a script cannot say, or says in Slurm's terms. Empty ones are taken from the script.
type Choices struct {
	Owner, GPUType, Image, PriorityClass, Name, Namespace string
	// Checkpoint is how often the program saves; 0 if it does not, or nobody says.
	Checkpoint time.Duration
}

// Note is something that the Run does not say as the script does.
type Note struct {
	Line int
	// Of is the directive, or the word of the body, that it is about.
	Of   string
	Text string
}

// String names the line and the directive.
func (n Note) String() string { return told(n.Line, n.Of, n.Text) }

// translation is one script on its way.
type translation struct {
	script  *Script
	choices Choices
	ask     ask
	width   width
	run     *rqv1.Run
	notes   []Note
}

// Translate returns the Run that does what a script says, and what is otherwise, in the order of the script. Its error
// is an *Error.
func Translate(script *Script, choices Choices) (*rqv1.Run, []Note, error) {
	t := &translation{script: script, choices: choices, run: &rqv1.Run{
		TypeMeta: metav1.TypeMeta{APIVersion: rqv1.GroupVersion.String(), Kind: "Run"}}}
	steps := []func() error{t.collect, t.readWidth, t.identity, t.resources, t.locality, t.runtime, t.template}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	slices.SortStableFunc(t.notes, func(a, b Note) int { return a.Line - b.Line })
	return t.run, t.notes, nil
}

// note adds a note on a directive.
func (t *translation) note(o *Option, format string, args ...any) {
	t.notes = append(t.notes, Note{Line: o.Line, Of: o.String(), Text: fmt.Sprintf(format, args...)})
}

// remark adds a note on a line, and on a word of it.
func (t *translation) remark(line int, of, format string, args ...any) {
	t.notes = append(t.notes, Note{Line: line, Of: of, Text: fmt.Sprintf(format, args...)})
}

// given returns an option that the script gives; nil for none.
func (t *translation) given(name string) *Option { return t.ask.given[name] }

// collect keeps the last of the options of one name, as sbatch does, and tells of those that no Run has.
func (t *translation) collect() error {
	t.ask.given = map[string]*Option{}
	const instead = "directives of PBS and of LSF are not read: say what is meant with " + marker
	if len(t.script.Others) > 0 && len(t.script.Options) == 0 {
		return &Error{Line: t.script.Others[0].Line, Of: t.script.Others[0].Name, Text: instead}
	}
	for i := range t.script.Options {
		o := &t.script.Options[i]
		if o.Name == "no-requeue" || o.Name == "requeue" {
			if other := t.given(map[string]string{"requeue": "no-requeue", "no-requeue": "requeue"}[o.Name]); other != nil {
				return refuse(o, "%s says the opposite: remove one of them", named(other))
			}
		}
		if last := t.given(o.Name); last != nil && last.String() != o.String() {
			t.note(last, "%s comes after it and counts, as in Slurm", named(o))
		}
		t.ask.given[o.Name] = o
	}
	for i := range t.script.Options {
		o := &t.script.Options[i]
		switch {
		case t.given(o.Name) != o:
		case o.about == nil:
			t.note(o, "this is not a known option of sbatch: see whether spec of the Run, or its template, has a field for "+
				"what it asks for")
		case o.about.advice != "":
			t.note(o, "%s", o.about.advice)
		}
	}
	if t.given("ignore-pbs") == nil {
		for _, o := range t.script.Others {
			t.remark(o.Line, o.Name, "%s, or leave it out", instead)
		}
	}
	for _, line := range t.script.Late {
		t.remark(line, marker, "Slurm reads no directive after the first command: move it up if it is meant, or leave it out")
	}
	return nil
}

// identity gives the Run its name and its owner.
func (t *translation) identity() error {
	t.run.Namespace = t.choices.Namespace
	name, by := t.choices.Name, t.given("job-name")
	if by != nil {
		name = by.Value
	}
	t.run.Name = nameOf(name)
	switch {
	case t.run.Name == "" && by != nil:
		return refuse(by, "a Run's name consists of letters, digits and dashes: choose another, such as --job-name=train")
	case t.run.Name == "":
		return &Error{Text: "the script has no name, and its file name cannot be one: add #SBATCH --job-name=NAME"}
	case by != nil && t.run.Name != name:
		t.note(by, "the Run is named %s: names have lower-case letters, digits and dashes, at most 52 of them, and begin "+
			"with a letter", t.run.Name)
	}
	t.run.Spec.Owner = rqv1.Owner(t.choices.Owner)
	account := t.given("account")
	switch {
	case t.choices.Owner != "" && !rqv1.IsOwner(t.choices.Owner):
		return &Error{Of: "--owner " + t.choices.Owner, Text: ownerRule}
	case t.choices.Owner != "":
		return nil
	case account == nil:
		return &Error{Text: "the script has no --account, so nobody would pay: name the owner who pays, such as " +
			"--owner org:ai:rai"}
	case !rqv1.IsOwner(account.Value):
		return refuse(account, "this is not an owner: %s; say with --owner whose Budget stands for the account", ownerRule)
	}
	t.run.Spec.Owner = rqv1.Owner(account.Value)
	if !strings.Contains(account.Value, ":") {
		t.note(account, "the owner is %s: say with --owner, such as --owner org:ai:%s, if its Budget has the path of an "+
			"account tree", account.Value, account.Value)
	}
	return nil
}

// locality keeps the nodes together that the script wants behind one switch.
func (t *translation) locality() error {
	o := t.given("switches")
	if o == nil {
		return nil
	}
	amount, wait, waits := strings.Cut(o.Value, "@")
	n, ok := number(amount)
	switch {
	case !ok || n < 1:
		return refuse(o, "expected a number of switches, such as --switches=1")
	case n == 1 && t.width.least < t.width.total:
		together := false
		step := int32(t.width.perPod)
		t.run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &step, AllowCrossGroupSpread: &together}
	case t.width.least < t.width.total:
		t.note(o, "a Run whose width is a range is in one domain or in any number of them: it is in any; --switches=1 "+
			"has it in one")
		return nil
	case t.width.total%n != 0 || t.width.perPod > 0 && t.width.total/n%t.width.perPod != 0:
		t.note(o, "%d GPUs are not %d groups of whole pods, and a group is what has to share a switch: the Run is where "+
			"there is room, in as few domains as possible", t.width.total, n)
		return nil
	default:
		group := int32(t.width.total / n)
		t.run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &group}
	}
	if waits {
		t.note(o, "the GPUs of a group always share a domain: this is not relaxed after %s", wait)
	}
	return nil
}

// runtime says how long the Run takes, and what becomes of it when it is cut.
func (t *translation) runtime() error {
	var runtime rqv1.RunRuntime
	if o := t.given("time"); o != nil {
		limit, err := duration(o)
		if err != nil {
			return err
		}
		if limit > 0 {
			runtime.MaxDuration = &metav1.Duration{Duration: limit}
		}
	}
	requeue, no := t.given("requeue"), t.given("no-requeue")
	switch each := t.choices.Checkpoint; {
	case each != 0 && (each < time.Second || each > longest || each%time.Second != 0):
		return &Error{Of: fmt.Sprintf("--checkpoint %s", each), Text: "expected a duration of whole seconds, such as 30m"}
	case each != 0 && no != nil:
		return refuse(no, "--checkpoint %s says that starting again is safe: leave one of them out", each)
	case each != 0:
		runtime.Checkpoint = &metav1.Duration{Duration: each}
	case requeue != nil:
		t.note(requeue, "a Run that is cut or loses its node starts again only if its program saves its work: "+
			"declare how often with --checkpoint, such as --checkpoint 30m")
	}
	if runtime.MaxDuration != nil || runtime.Checkpoint != nil {
		t.run.Spec.Runtime = &runtime
	}
	t.run.Spec.Suspend = t.given("hold") != nil
	if o := t.given("qos"); o != nil && t.choices.PriorityClass == "" {
		t.note(o, "there is no QOS: its limits are for the owner's Budget, and its priority among your own Runs for "+
			"--priority-class")
	}
	if class := t.choices.PriorityClass; class != "" && len(validation.IsDNS1123Subdomain(class)) > 0 {
		return &Error{Of: "--priority-class " + class, Text: "expected the name of a PriorityClass; kubectl get " +
			"priorityclasses lists them"}
	}
	t.run.Spec.PriorityClassName = t.choices.PriorityClass
	return nil
}
