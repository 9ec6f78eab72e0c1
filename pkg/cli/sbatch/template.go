package sbatch

import (
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// template makes the pods: the script from its first command on is what their container does.
func (t *translation) template() error {
	requests, err := t.requests()
	if err != nil {
		return err
	}
	chdir, body := t.given("chdir"), t.script.Body != ""
	switch image := t.choices.Image; {
	case body && image == "":
		return &Error{Text: "the script's commands run in a container: name an image that has the program with " +
			"--image, such as --image registry.example.com/rai/train:1.0"}
	case strings.ContainsAny(image, " \t\r\n"):
		return &Error{Of: "--image " + image, Text: "the name of an image cannot contain spaces"}
	case image == "":
		t.remark(0, "", "the script has no commands: the pods would hold their GPUs and do nothing")
		for _, name := range []string{"mem", "mem-per-cpu", "mem-per-gpu", "cpus-per-task", "cpus-per-gpu", "chdir"} {
			if o := t.given(name); o != nil {
				t.note(o, "it is not translated, since there is no container to request it: use --image")
			}
		}
		return nil
	}
	main := corev1.Container{Name: "main", Image: t.choices.Image}
	if len(requests) > 0 {
		main.Resources.Requests = requests
	}
	switch {
	case chdir == nil:
	case path.IsAbs(chdir.Value):
		main.WorkingDir = chdir.Value
	default:
		t.note(chdir, "a directory of the image or of a volume is meant, by its whole path; the one where you call "+
			"sbatch is not there: write it from / on")
	}
	if body {
		main.Command = append(main.Command, t.script.Command...)
		main.Command = append(main.Command, t.script.Body)
		t.readBody()
	}
	for i, word := range main.Command {
		main.Command[i] = literal(word)
	}
	if body && main.Command[len(main.Command)-1] != t.script.Body {
		t.remark(t.script.FirstLine, "", "Kubernetes reads $$ and $(NAME) in a command itself: they are written $$$$ and "+
			"$$(NAME), and the script sees them as they were")
	}
	t.run.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{main}}}
	return nil
}

var (
	// expanded matches what Kubernetes would change in a command: $$, and the value of a variable.
	expanded = regexp.MustCompile(`\$\$|\$\([A-Z_][A-Z0-9_]*\)`)
	// toDouble matches all that begins as such a thing does.
	toDouble = regexp.MustCompile(`\$\$+|\$\(`)
)

// literal writes a word of a container's command so that Kubernetes leaves it as it is.
func literal(word string) string {
	if !expanded.MatchString(word) {
		return word
	}
	return toDouble.ReplaceAllStringFunc(word, func(dollars string) string {
		n := strings.Count(dollars, "$")
		return strings.Repeat("$", n) + dollars
	})
}
