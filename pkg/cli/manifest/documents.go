package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// Stdin is the file name that stands for standard input.
const Stdin = "-"

// document is one YAML or JSON document of a file.
type document struct {
	file  string
	index int // from 1
	json  bool
	// text of the document. A YAML document is preceded by as many empty lines as lines come before it in its file,
	// so that the line numbers in a parser's errors are those of the file.
	text []byte
}

// ManifestEndings are the endings of the names of files that hold API objects.
var ManifestEndings = []string{".yaml", ".yml", ".json"}

// String names the document for error messages.
func (d document) String() string {
	if d.file == "" {
		return "the command line"
	}
	return fmt.Sprintf("%s, document %d", Source(d.file), d.index)
}

// Source names a file for error messages.
func Source(file string) string {
	if file == Stdin {
		return "standard input"
	}
	return file
}

// expand replaces directories by the YAML and JSON files in them, sorted by name. Directories below are read only
// when recursive is set.
func expand(paths []string, recursive bool) ([]string, error) {
	var files []string
	for _, path := range paths {
		if stat, err := os.Stat(path); path == Stdin || isAddress(path) || err == nil && !stat.IsDir() {
			files = append(files, path)
			continue
		} else if err != nil {
			return nil, session.Fail(session.ExitError, "cannot read %s: %v", path, errors.Unwrap(err))
		}
		found, err := manifestsIn(path, recursive)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, session.Fail(session.ExitError, "directory %s holds no .yaml, .yml or .json file", path)
		}
		files = append(files, found...)
	}
	return files, nil
}

func manifestsIn(dir string, recursive bool) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains(ManifestEndings, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// ReadDocuments reads a file, what is at an address, or standard input for "-", and splits it.
func ReadDocuments(ctx context.Context, file string, in io.Reader) ([]document, error) {
	var text []byte
	var err error
	switch {
	case file == Stdin:
		text, err = readUntil(ctx, in)
	case isAddress(file):
		text, err = download(ctx, file)
	default:
		if text, err = os.ReadFile(file); err != nil {
			err = errors.Unwrap(err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, session.Fail(session.ExitError, "cannot read %s: %v", Source(file), err)
	}
	return split(file, text)
}

// readUntil reads all that comes, or until the context ends: somebody may sit at a terminal and not know what to type.
func readUntil(ctx context.Context, in io.Reader) ([]byte, error) {
	text, problem := make(chan []byte, 1), make(chan error, 1)
	go func() {
		all, err := io.ReadAll(in)
		problem <- err
		text <- all
	}()
	select {
	case all := <-text:
		return all, <-problem
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// split splits what is in a file.
func split(file string, text []byte) ([]document, error) {
	if _, _, isJSON := utilyaml.GuessJSONStream(bytes.NewReader(text), 64); isJSON {
		return splitJSON(file, text)
	}
	return splitYAML(file, text), nil
}

// splitYAML cuts a YAML stream at its document markers.
func splitYAML(file string, text []byte) []document {
	var documents []document
	var current strings.Builder
	flush := func() {
		documents = append(documents, document{file: file, index: len(documents) + 1, text: []byte(current.String())})
	}
	for number, line := range strings.SplitAfter(string(text), "\n") {
		if marker := strings.TrimRight(line, "\r\n"); number > 0 && (marker == "---" || strings.HasPrefix(marker, "--- ")) {
			flush()
			current.Reset()
			current.WriteString(strings.Repeat("\n", number))
		}
		current.WriteString(line)
	}
	flush()
	return documents
}

// splitJSON cuts a stream of JSON values.
func splitJSON(file string, text []byte) ([]document, error) {
	var documents []document
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		next := document{file: file, index: len(documents) + 1, json: true}
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return nil, session.Fail(session.ExitError, "%v: not valid JSON: %v", next, err)
		}
		next.text = value
		documents = append(documents, next)
	}
}
