// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// probe is a test that may fail without failing the test that runs it.
type probe struct {
	failed bool
	log    string
}

func (p *probe) Helper()                      {}
func (p *probe) Name() string                 { return "probe" }
func (p *probe) Logf(string, ...any)          {}
func (p *probe) Log(...any)                   {}
func (p *probe) Skipf(string, ...any)         { panic("probe: skipped") }
func (p *probe) Skip(...any)                  { panic("probe: skipped") }
func (p *probe) SkipNow()                     { panic("probe: skipped") }
func (p *probe) Errorf(f string, args ...any) { p.failed, p.log = true, fmt.Sprintf(f, args...) }
func (p *probe) Error(args ...any)            { p.failed, p.log = true, fmt.Sprint(args...) }
func (p *probe) Fatalf(f string, args ...any) { p.Errorf(f, args...); runtime.Goexit() }
func (p *probe) Fatal(args ...any)            { p.Error(args...); runtime.Goexit() }
func (p *probe) FailNow()                     { p.failed = true; runtime.Goexit() }
func (p *probe) Fail()                        { p.failed = true }
func (p *probe) Failed() bool                 { return p.failed }

// fails runs f on a probe and tells whether it failed or panicked.
func fails(f func(p *probe)) bool {
	p, done := &probe{}, make(chan bool)
	go func() {
		defer func() { done <- recover() != nil }()
		f(p)
	}()
	return <-done || p.failed
}

// TestMutants puts each fault of mutant.go into the engine and demands that the random histories or the stories see it. A
// fault that nothing sees is a rule that nothing holds.
func TestMutants(t *testing.T) {
	for name, value := range map[string]string{"rapid.shrinktime": "0s", "rapid.nofailfile": "true", "rapid.checks": "2000"} {
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { flag.Set(name, old) })
	}
	for m := 1; m < engine.Mutations; m++ {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			defer engine.SetMutant(m)()
			histories := fails(func(p *probe) { rapid.Check(p, history) })
			stories := storiesDiffer(t)
			t.Logf("seen by random histories: %v, by stories: %v", histories, stories)
			if !histories && !stories {
				t.Errorf("nothing sees mutant %d of core/engine/mutant.go", m)
			}
		})
	}
}

func storiesDiffer(t *testing.T) bool {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if fails(func(*probe) {
			if !bytes.Equal(newStory(t).play(raw), raw) {
				panic("differs")
			}
		}) {
			return true
		}
	}
	return false
}
