// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// TestFormTellsSpecsApart sets one thing after the other in a spec, down to each field that the JSON of it shows; no
// two of the specs may have the same form. Mutants: any field of PodSpec, HostPort, Toleration, Amounts that
// form.spec leaves out.
func TestFormTellsSpecsApart(t *testing.T) {
	var s cluster.PodSpec
	seen := map[string]string{} // form -> what is set
	look := func(path string) {
		f := form(nil).spec(&s)
		if other, known := seen[string(f)]; known {
			t.Errorf("%s and %s have the same form", path, other)
		}
		seen[string(f)] = path
	}
	look("nothing")
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("json"); tag != "-" {
			eachLeaf(v.Field(i), v.Type().Field(i).Name, 6, look)
		}
	}
	if len(seen) < 150 {
		t.Errorf("%d different specs were made", len(seen))
	}
}

// eachLeaf sets v to something in each way, down to a depth, and back.
func eachLeaf(v reflect.Value, path string, depth int, look func(path string)) {
	if !v.CanSet() || depth == 0 {
		return
	}
	defer v.SetZero()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachLeaf(v.Field(i), path+"."+v.Type().Field(i).Name, depth-1, look)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		eachLeaf(v.Elem(), "*"+path, depth-1, look)
	case reflect.Array:
		for i := range v.Len() {
			eachLeaf(v.Index(i), fmt.Sprint(path, i), depth-1, look)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		eachLeaf(v.Index(0), path+"[]", depth-1, look)
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()),
				reflect.ValueOf("value").Convert(v.Type().Elem()))
			look(path)
		}
	case reflect.String:
		v.SetString("text")
		look(path)
	case reflect.Bool:
		v.SetBool(true)
		look(path)
	case reflect.Uint64:
		v.SetUint(7)
		look(path)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
		look(path)
	}
}

// TestFormsOfListsDoNotRunTogether: parts of a form say how long they are. Mutants: text without a length, absent as
// empty.
func TestFormsOfListsDoNotRunTogether(t *testing.T) {
	some := rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(rapid.StringMatching("[ab]{0,2}"), 0, 3))
	rapid.Check(t, func(t *rapid.T) {
		a, b := cluster.PodSpec{Gates: some.Draw(t, "gates"), Images: some.Draw(t, "images")},
			cluster.PodSpec{Gates: some.Draw(t, "gates"), Images: some.Draw(t, "images")}
		f, g := form(nil).spec(&a), form(nil).spec(&b)
		if same := reflect.DeepEqual(a, b); same != (string(f) == string(g)) {
			t.Fatalf("%+v and %+v: the same %v, the same form %v", a, b, same, !same)
		}
	})
}
