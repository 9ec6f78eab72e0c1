package book

import (
	"reflect"
	"testing"

	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestNobodyIsLeftUnwired looks at everybody in a new book: whoever they need is there, as are the maps that they write
// to.
func TestNobodyIsLeftUnwired(t *testing.T) {
	args := config.Args{TopologyLevels: []string{"fabric.domain"}, FabricLevel: "fabric.domain"}
	seen := map[uintptr]bool{}
	var look func(path string, v reflect.Value)
	look = func(path string, v reflect.Value) {
		s := v.Elem()
		if seen[v.Pointer()] || s.Kind() != reflect.Struct || s.Type().PkgPath() != reflect.TypeFor[Book]().PkgPath() {
			return
		}
		seen[v.Pointer()] = true
		for i := range s.NumField() {
			field, name := s.Field(i), path+"."+s.Type().Field(i).Name
			switch field.Kind() {
			case reflect.Pointer:
				if field.IsNil() {
					t.Errorf("%s is nil", name)
					continue
				}
				look(name, field)
			case reflect.Map, reflect.Chan, reflect.Func:
				if field.IsNil() {
					t.Errorf("%s is nil", name)
				}
			}
		}
	}
	look("book", reflect.ValueOf(New(&args)))
}
