package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// schema is what is read of the schema of a field.
type schema struct {
	Type, Format, Description string
	Properties                map[string]schema
	Required                  []string
	Items                     *schema
	AdditionalProperties      *schema
	Default                   json.RawMessage
	Enum                      []any
	Minimum, Maximum          *float64
	MinLength, MaxLength      *int64
	MinItems, MaxItems        *int64
	MinProperties             *int64
	MaxProperties             *int64
	Rules                     []struct{ Message string } `json:"x-kubernetes-validations"`
}

// typed is a field's type, with its bounds, its default, and whether it must be there.
func (s *schema) typed(required bool) string {
	parts := []string{s.named()}
	for _, bound := range []struct {
		from, to *int64
		of       string
	}{
		{whole(s.Minimum), whole(s.Maximum), ""}, {s.MinLength, s.MaxLength, " characters"},
		{s.MinItems, s.MaxItems, " entries"}, {s.MinProperties, s.MaxProperties, " entries"},
	} {
		switch {
		case bound.from != nil && bound.to != nil:
			parts = append(parts, fmt.Sprintf("%d to %d%s", *bound.from, *bound.to, bound.of))
		case bound.from != nil:
			parts = append(parts, fmt.Sprintf("at least %d%s", *bound.from, bound.of))
		case bound.to != nil:
			parts = append(parts, fmt.Sprintf("at most %d%s", *bound.to, bound.of))
		}
	}
	if s.Default != nil {
		parts = append(parts, fmt.Sprintf("default `%s`", s.Default))
	}
	if required {
		parts = append(parts, "required")
	}
	return strings.Join(parts, ", ")
}

// named is the type of a field alone.
func (s *schema) named() string {
	switch {
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			values[i] = fmt.Sprintf("`%v`", value)
		}
		return "one of " + strings.Join(values, ", ")
	case s.Format == "date-time":
		return "time"
	case s.Type == "array":
		return "list of " + s.Items.named()
	case s.AdditionalProperties != nil:
		return "map of " + s.AdditionalProperties.named()
	}
	return s.Type
}

// meaning is what a field is for, in one line of a table, with the rules for its value.
func (s *schema) meaning() string {
	text := s.Description
	if text == "" && s.Items != nil {
		text = s.Items.Description
	}
	for _, rule := range s.Rules {
		if rule.Message != "" {
			text += fmt.Sprintf(" Rule: %s.", rule.Message)
		}
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}

// whole is a bound as a whole number, as all of this API's are.
func whole(bound *float64) *int64 {
	if bound == nil {
		return nil
	}
	n := int64(*bound)
	return &n
}
