// SPDX-License-Identifier: Apache-2.0

package bottleneck

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what Find says into the scenarios")

// TestScenarios: buckets in, verdict out. A scenario is a file in testdata; lines with > are the verdict.
//
//	buckets N               the next lines describe N equal buckets of 100 ms
//	stage NAME key=value    in, out, content, capacity, blocked, starved
//	held REASON PODS
//	part STAGE CAUSE SHARE [STAYS]  a share of the stage's time, and which share of it stays without the cause
//	limit in-flight|decided-ahead VALUE DEFAULT
//	blocked CAUSE, retried SHARE, flushed SHARE, waited SECONDS, within SECONDS, unobserved CAUSE WHY, unmeasured STAGE,
//	resolution POD-SECONDS
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scenarios, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want := split(string(text))
			got := show(Find(window(t, input)))
			if *update {
				if err := os.WriteFile(file, []byte(input+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// split separates the input of a scenario from the verdict.
func split(text string) (input, verdict string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ">") {
			verdict += line
		} else {
			input += line
		}
	}
	return input, verdict
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func stage(t *testing.T, name string) Stage {
	t.Helper()
	i := slices.Index(stageNames[:], name)
	if i < 0 {
		t.Fatalf("there is no stage %q", name)
	}
	return Stage(i)
}

func causeOf(t *testing.T, name string) (c Cause) {
	t.Helper()
	if err := c.UnmarshalText([]byte(name)); err != nil {
		t.Fatal(err)
	}
	return c
}

// window reads the input of a scenario.
func window(t *testing.T, input string) (w Window) {
	t.Helper()
	count, b := 0, Bucket{}
	end := func() {
		for range count {
			w.Buckets = append(w.Buckets, b)
		}
	}
	e := &w.Evidence
	for lines := bufio.NewScanner(strings.NewReader(input)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		switch f[0] {
		case "buckets":
			end()
			count, b = int(number(t, f[1])), Bucket{Took: 100 * time.Millisecond}
		case "stage":
			l := &b.Stages[stage(t, f[1])]
			for _, word := range f[2:] {
				key, value, _ := strings.Cut(word, "=")
				*map[string]*float64{"in": &l.In, "out": &l.Out, "content": &l.Content, "capacity": &l.AtCapacity,
					"blocked": &l.Blocked, "starved": &l.Starved}[key] = number(t, value)
			}
		case "held":
			b.Held[slices.Index(reasonNames[:], f[1])] = number(t, f[2])
		case "part":
			s := stage(t, f[1])
			p := Part{Cause: causeOf(t, f[2]), Share: number(t, f[3])}
			if len(f) > 4 {
				p.Stays = number(t, f[4])
			}
			e.Parts[s] = append(e.Parts[s], p)
		case "limit":
			*map[string]*Limit{"in-flight": &e.InFlight, "decided-ahead": &e.DecidedAhead}[f[1]] =
				Limit{number(t, f[2]), number(t, f[3])}
		case "blocked":
			c := causeOf(t, f[1])
			e.Blocked = &c
		case "retried":
			v := number(t, f[1])
			e.Retried = &v
		case "flushed":
			e.Flushed = number(t, f[1])
		case "waited":
			d := time.Duration(number(t, f[1]) * float64(time.Second))
			e.Waited = &d
		case "within":
			e.WaitedWithin = time.Duration(number(t, f[1]) * float64(time.Second))
		case "resolution":
			e.Resolution = number(t, f[1])
		case "unmeasured":
			e.Unmeasured[stage(t, f[1])] = true
		case "unobserved":
			e.Unobserved = map[Cause]string{causeOf(t, f[1]): strings.Join(f[2:], " ")}
		default:
			t.Fatalf("unknown word %q", f[0])
		}
	}
	end()
	return w
}

// show writes a verdict.
func show(v Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "> %.1f pod-seconds in %.1f s, service %.1f, explained %.2f, arrived %.1f/s, placed %.1f/s\n",
		v.PodSeconds, v.Seconds, v.Service, v.Explained, v.Arrived, v.Placed)
	if v.Known {
		fmt.Fprintf(&b, "> bottleneck %s\n", v.Findings[0].Cause)
	} else {
		fmt.Fprintf(&b, "> not known: %s\n", v.NotKnown)
	}
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "> %s at %s: %.1f pod-seconds, %.2f", f.Cause, f.Stage, f.PodSeconds, f.Share)
		if f.Gain.PerSecond > 0 {
			least := ""
			if f.Gain.AtLeast {
				least = "at least "
			}
			fmt.Fprintf(&b, ", gain %s%.1f/s", least, f.Gain.PerSecond)
		}
		switch {
		case f.Gain.Unknown != "":
			fmt.Fprintf(&b, ", gain not known: %s\n", f.Gain.Unknown)
		case f.Gain.AtLeast && f.Gain.PerSecond == 0:
			fmt.Fprintf(&b, ", saves at least %.2f\n", f.Gain.Saved)
		default:
			fmt.Fprintf(&b, ", saves %.2f\n", f.Gain.Saved)
		}
	}
	if v.Next != nil {
		fmt.Fprintf(&b, "> next %s\n", *v.Next)
	}
	return b.String()
}
