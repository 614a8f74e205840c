// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/sim/bound"
)

const twoKinds = "2\n10 20\n2\n6 1 1\n3 20 2\n"

// TestInstancesAreRead: an archive with an instance whose optimum is known, and one whose optimum is not.
func TestInstancesAreRead(t *testing.T) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	files := tar.NewWriter(zip)
	for _, name := range []string{"a", "b"} {
		head := &tar.Header{Name: "x/" + name + ".vbp", Mode: 0o600, Size: int64(len(twoKinds))}
		if err := files.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(files, twoKinds)
	}
	files.Close()
	zip.Close()
	got := ""
	optima := strings.NewReader("instance_name\tLB\tOPT\na\t1\t2\nb\t1\t-1\n")
	err := ReadInstances(&buf, optima, func(in *Instance) error {
		got += fmt.Sprintln(in.Name, in.Capacity, in.Items, in.Optimum)
		return nil
	})
	if want := "a [10 20] [[6 1] [3 20] [3 20]] 2\nb [10 20] [[6 1] [3 20] [3 20]] 0\n"; err != nil || got != want {
		t.Errorf("%q (%v), want %q", got, err, want)
	}
}

// TestBrokenInstances are refused with their name.
func TestBrokenInstances(t *testing.T) {
	for text, want := range map[string]string{ // order: each by itself
		"": "unexpected EOF", "0\n": "0 resources", "2\n10\n": "invalid", "1\n10\n1\n5\n": "unexpected EOF",
		"1\n10\n1\n-5 1\n": "-5 is not a number", "1\nx\n": "invalid syntax",
	} {
		if want == "invalid" {
			want = "unexpected EOF"
		}
		if _, err := ReadInstance("broken", strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), "instance broken") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestLargestFirst orders items by the sum of squares of their shares: 0.37 of the first and 1.09 of the others.
func TestLargestFirst(t *testing.T) {
	in, err := ReadInstance("a", strings.NewReader(twoKinds))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(in.LargestFirst()); got != "[1 2 0]" {
		t.Errorf("order %s, want [1 2 0]", got)
	}
}

// TestBoundsAreBelowKnownOptima checks bound B2 on every instance of Vectorpack whose optimum is known.
func TestBoundsAreBelowKnownOptima(t *testing.T) {
	for _, set := range []string{"New", "Panigrahy"} {
		archive := openTrace(t, "vectorpack", set+"_instances.tar.gz")
		if archive == nil {
			return
		}
		known, sum, optima := 0, 0, 0
		err := ReadInstances(archive, openTrace(t, "vectorpack", set+"_summary_known.csv"), func(in *Instance) error {
			if in.Optimum == 0 {
				return nil
			}
			got := bound.Bins(in.Items, in.Capacity)
			if got > in.Optimum {
				t.Errorf("%s: bound %d above the optimum %d", in.Name, got, in.Optimum)
			}
			known, sum, optima = known+1, sum+got, optima+in.Optimum
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"New": 726, "Panigrahy": 1200}[set]; known != want {
			t.Errorf("%s: %d instances with a known optimum, want %d", set, known, want)
		}
		t.Logf("%s: %d instances, bounds are %.3f of the optima", set, known, float64(sum)/float64(optima))
	}
}

// TestSolveAgreesWithKnownOptima: the exact solver places all items of each instance of 20 items in as many bins as the
// published optimum, and not in one fewer.
func TestSolveAgreesWithKnownOptima(t *testing.T) {
	archive := openTrace(t, "vectorpack", "New_instances.tar.gz")
	if archive == nil {
		return
	}
	solved, unproved := 0, 0
	err := ReadInstances(archive, openTrace(t, "vectorpack", "New_summary_known.csv"), func(in *Instance) error {
		if in.Optimum == 0 || len(in.Items) > 20 || len(in.Capacity) > 3 {
			return nil
		}
		for bins := in.Optimum - 1; bins <= in.Optimum; bins++ {
			s := bound.Small{}
			for range bins {
				s.Free = append(s.Free, in.Capacity)
			}
			for _, item := range in.Items {
				s.Pods = append(s.Pods, bound.SmallPod{Need: item})
			}
			got := s.Solve(200_000)
			all := got.Placed[0] == len(in.Items)
			if all && bins < in.Optimum || got.Proved && !all && bins == in.Optimum {
				t.Errorf("%s: %d of %d items in %d bins, the optimum is %d", in.Name, got.Placed[0], len(in.Items),
					bins, in.Optimum)
			}
			if !got.Proved && !all {
				unproved++
			}
		}
		solved++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d instances, %d answers without a proof", solved, unproved); solved < 50 || unproved > solved/5 {
		t.Errorf("%d instances, %d answers without a proof", solved, unproved)
	}
}
