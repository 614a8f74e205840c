// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// lanesSum is the CPU time of all lanes.
func lanesSum(p *Profile) (sum time.Duration) {
	for _, l := range p.Lanes {
		if l.Samples > 0 { // the CPU time of others has no stack
			sum += *l.CPU
		}
	}
	return sum
}

// checkToolPprof has go tool pprof read the profile: each of its sample types, by function and as text.
func checkToolPprof(t *testing.T, x *Stacks) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile.pb.gz")
	if err := os.WriteFile(file, written(t, x.WritePprof), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, index := range []string{"samples", "cpu", "runnable", "blocked"} {
		out, err := exec.Command("go", "tool", "pprof", "-top", "-sample_index="+index, file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Type: "+index) {
			t.Errorf("go tool pprof -sample_index=%s: %v\n%s", index, err, out)
		}
	}
	out, err := exec.Command("go", "tool", "pprof", "-top", "-tagfocus=lane=other", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "apm.spin") {
		t.Errorf("go tool pprof -tagfocus=lane=other: %v\n%s", err, out)
	}
}

// checkPprof reads the profile with pprof's package. Its CPU time is that of the lanes, rounded for each stack.
func checkPprof(t *testing.T, x *Stacks, p *Profile) {
	t.Helper()
	got, err := profile.Parse(bytes.NewReader(written(t, x.WritePprof)))
	if err != nil {
		t.Fatal(err)
	}
	sum, spinning := int64(0), false
	for _, s := range got.Sample {
		sum += s.Value[1]
		for _, l := range s.Location {
			spinning = spinning || l.Line[0].Function.Name == "github.com/kumiki-scheduler/kumiki/apm.spin"
		}
		if len(s.Label["lane"]) != 1 {
			t.Errorf("a sample has the labels %v", s.Label)
		}
	}
	if want := lanesSum(p); (time.Duration(sum)-want).Abs() > time.Duration(len(got.Sample)) || !spinning {
		t.Errorf("pprof: CPU %d, lanes %d; has spin: %v", sum, want, spinning)
	}
	if got.DefaultSampleType != "cpu" || got.SampleType[1].Unit != "nanoseconds" {
		t.Errorf("pprof: types %v, default %q", got.SampleType, got.DefaultSampleType)
	}
}

// speedscopeSchema has the fields of speedscope's schema, for profiles of samples. Those that must be there are pointers
// or lists.
type speedscopeSchema struct {
	Schema string `json:"$schema"`
	Shared *struct {
		Frames []struct {
			Name, File string
			Line, Col  int
		}
	}
	Profiles []struct {
		Type, Name, Unit     string
		StartValue, EndValue *int64
		Samples              [][]int
		Weights              []int64
	}
	Name, Exporter     string
	ActiveProfileIndex int
}

// readSpeedscope reads an export; a field that the schema does not have is an error.
func readSpeedscope(t *testing.T, x *Stacks) (f speedscopeSchema) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(written(t, x.WriteSpeedscope)))
	in.DisallowUnknownFields()
	if err := in.Decode(&f); err != nil {
		t.Fatalf("speedscope: %v", err)
	}
	return f
}

// TestExportsWithoutSamples: the lists that speedscope's schema requires are there, and pprof reads a profile without
// samples.
func TestExportsWithoutSamples(t *testing.T) {
	x := &Stacks{}
	if f := readSpeedscope(t, x); f.Shared == nil || f.Shared.Frames == nil || f.Profiles == nil {
		t.Errorf("speedscope: a list is missing: %+v", f)
	}
	if _, err := profile.Parse(bytes.NewReader(written(t, x.WritePprof))); err != nil {
		t.Errorf("pprof: %v", err)
	}
}

// checkSpeedscope checks what the schema requires: profiles with type, name, unit, start and end, as many weights as
// samples, frames with names, and indexes within the frames.
func checkSpeedscope(t *testing.T, x *Stacks, p *Profile) {
	t.Helper()
	f := readSpeedscope(t, x)
	if f.Schema != "https://www.speedscope.app/file-format-schema.json" || f.Shared == nil || len(f.Profiles) == 0 {
		t.Fatalf("speedscope: %+v", f)
	}
	for _, frame := range f.Shared.Frames {
		if frame.Name == "" {
			t.Error("speedscope: a frame has no name")
		}
	}
	total := int64(0)
	for _, one := range f.Profiles {
		if one.Type != "sampled" || one.Name == "" || one.Unit != "nanoseconds" || one.StartValue == nil ||
			one.EndValue == nil || len(one.Samples) != len(one.Weights) {
			t.Errorf("speedscope: profile %q: %+v", one.Name, one)
			continue
		}
		sum := *one.StartValue
		for i, stack := range one.Samples {
			sum += one.Weights[i]
			for _, index := range stack {
				if index < 0 || index >= len(f.Shared.Frames) {
					t.Errorf("speedscope: profile %q has frame %d of %d", one.Name, index, len(f.Shared.Frames))
				}
			}
		}
		if sum != *one.EndValue {
			t.Errorf("speedscope: profile %q has weights of %d and ends at %d", one.Name, sum, *one.EndValue)
		}
		total += sum
	}
	if want := lanesSum(p); (time.Duration(total) - want).Abs() > time.Duration(len(x.list)) {
		t.Errorf("speedscope: CPU %d, lanes %d", total, want)
	}
}
