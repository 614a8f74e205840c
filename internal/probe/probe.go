// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
)

// T is a test that may fail without failing the test that runs it. It serves rapid.Check.
type T struct{ failed bool }

func (p *T) Helper()               {}
func (p *T) Name() string          { return "probe" }
func (p *T) Logf(string, ...any)   {}
func (p *T) Log(...any)            {}
func (p *T) Skipf(string, ...any)  { panic("probe: skipped") }
func (p *T) Skip(...any)           { panic("probe: skipped") }
func (p *T) SkipNow()              { panic("probe: skipped") }
func (p *T) Errorf(string, ...any) { p.failed = true }
func (p *T) Error(...any)          { p.failed = true }
func (p *T) Fatalf(string, ...any) { p.FailNow() }
func (p *T) Fatal(...any)          { p.FailNow() }
func (p *T) FailNow()              { p.failed = true; runtime.Goexit() }
func (p *T) Fail()                 { p.failed = true }
func (p *T) Failed() bool          { return p.failed }

// Fails runs f and reports whether it failed its T or panicked.
func Fails(f func(p *T)) bool {
	p, panicked := &T{}, make(chan bool)
	go func() {
		defer func() { panicked <- recover() != nil }()
		f(p)
	}()
	return <-panicked || p.failed
}

// QuickRapid makes rapid stop at the first failure, without shrinking it or writing it to a file, after so many checks;
// until the test ends.
func QuickRapid(t testing.TB, checks int) {
	t.Helper()
	for name, value := range map[string]string{"rapid.shrinktime": "0s", "rapid.nofailfile": "true", "rapid.checks": fmt.Sprint(checks)} {
		f := flag.Lookup(name)
		if f == nil {
			t.Fatalf("rapid has no flag %s", name)
		}
		old := f.Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatalf("setting %s: %v", name, err)
		}
		t.Cleanup(func() {
			if err := flag.Set(name, old); err != nil {
				t.Errorf("restoring %s: %v", name, err)
			}
		})
	}
}
