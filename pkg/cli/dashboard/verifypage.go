package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// VerifyPage returns one file that checks records of the lottery in a browser, also when it is opened from disk: it
// loads nothing, and tells the browser to let it load and send nothing, and to run and show only what is in it.
func VerifyPage() []byte {
	script := slices.Concat([]byte("\n"), read("verify.js"), imported(read("verify-page.js")))
	style := slices.Concat([]byte("\n"), read("style.css"))
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'",
		hashed(script), hashed(style))
	charset := `<meta charset="utf-8">`
	return []byte(strings.NewReplacer(
		charset, charset+"\n<meta http-equiv=\"Content-Security-Policy\" content=\""+policy+"\">",
		`<script type="module" src="verify-page.js"></script>`, `<script type="module">`+string(script)+"</script>",
		`<link rel="stylesheet" href="style.css">`, "<style>"+string(style)+"</style>",
	).Replace(string(read("verify.html"))))
}

// hashed is a text as a policy names it that lets it be run or shown.
func hashed(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// read returns a file of the page.
func read(name string) []byte {
	data, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // it is built in
	}
	return data
}

// imported returns a module without what it imports, which stands before it.
func imported(module []byte) []byte {
	var out []byte
	for _, line := range bytes.SplitAfter(module, []byte("\n")) {
		if !bytes.HasPrefix(line, []byte("import ")) {
			out = append(out, line...)
		}
	}
	return out
}
