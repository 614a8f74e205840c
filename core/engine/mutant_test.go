// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/internal/probe"
)

// TestMutants puts each fault of mutant.go into the engine and demands that the random histories or the stories see it. A
// fault that nothing sees is a rule that nothing holds.
func TestMutants(t *testing.T) {
	probe.QuickRapid(t, 2000)
	for m := 1; m < engine.Mutations; m++ {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			defer engine.SetMutant(m)()
			switch {
			case storiesDiffer(t):
				t.Log("seen by stories")
			case sittingsDiffer(t):
				t.Log("seen by stories of sessions")
			case questionsDiffer(t):
				t.Log("seen by stories of questions")
			case probe.Fails(func(p *probe.T) { unprovedIsTold(p) }):
				t.Log("seen by TestUnprovedIsTold")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, history) }):
				t.Log("seen by random histories")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, gangHistory) }):
				t.Log("seen by random histories of gangs")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, gangEviction) }):
				t.Log("seen by random histories of evictions in units")
			case probe.Fails(func(p *probe.T) { rapid.Check(p, besideStrangers) }):
				t.Log("seen by random histories beside strangers")
			default:
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
		if probe.Fails(func(*probe.T) {
			if !bytes.Equal(newStory(t).play(raw), raw) {
				panic("differs")
			}
		}) {
			return true
		}
	}
	robberies, _ := filepath.Glob("testdata/preempt/*.txt")
	for _, file := range robberies {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if probe.Fails(func(*probe.T) {
			if !bytes.Equal(newRobbing(t).play(raw), raw) {
				panic("differs")
			}
		}) {
			return true
		}
	}
	return false
}

func sittingsDiffer(t *testing.T) bool {
	files, _ := filepath.Glob("testdata/sessions/*.txt")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if probe.Fails(func(*probe.T) {
			if !bytes.Equal(newSitting(t).play(raw), raw) {
				panic("differs")
			}
		}) {
			return true
		}
	}
	return false
}
