// SPDX-License-Identifier: Apache-2.0

// Command report runs the tests of one of upstream's packages, each in a process of its own, and notes how each
// ended; a test that panics ends its own process alone. With -list it writes tests.md from what was noted and from
// testdata/reasons.txt, and exits with 1 if a test failed for a reason that is not there.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// result is how a test ended.
type result struct {
	Test string `json:"test"`
	// Passed and Failed are the numbers of its cases that ended so; of a test without cases, of itself.
	Passed int      `json:"passed"`
	Failed []string `json:"failed,omitempty"`
	Ended  string   `json:"ended"`           // pass, fail, or why the process ended without an answer
	Why    string   `json:"why,omitempty"`   // the first error
	Leaks  bool     `json:"leaks,omitempty"` // goroutines were left
}

// limit is how long one test may take.
const limit = 10 * time.Minute

func main() {
	binary := flag.String("binary", "", "compiled tests")
	pkg := flag.String("package", "", "package below test/integration/scheduler")
	run := flag.String("run", ".", "regular expression of tests")
	dir := flag.String("dir", "", "directory of the package")
	log := flag.String("log", "", "directory for the output of tests")
	list := flag.Bool("list", false, "write tests.md")
	flag.Parse()
	var err error
	if *list {
		err = write()
	} else {
		err = all(*binary, *pkg, *dir, *log, regexp.MustCompile(*run))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// all runs the tests of a package and notes their results beside those of tests that were not run.
func all(binary, pkg, dir, log string, run *regexp.Regexp) error {
	text, err := exec.Command(binary, "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w", pkg, err)
	}
	if err := os.MkdirAll(log, 0o755); err != nil {
		return err
	}
	known, err := read(pkg)
	if err != nil {
		return err
	}
	var results []result
	for _, name := range strings.Fields(string(text)) {
		if !strings.HasPrefix(name, "Test") {
			continue
		}
		r := result{Test: name, Ended: "not run"}
		if at := slices.IndexFunc(known, func(r result) bool { return r.Test == name }); at >= 0 {
			r = known[at]
		}
		results = append(results, r)
	}
	for i := range results {
		if name := results[i].Test; run.MatchString(name) {
			began := time.Now()
			r := one(binary, name, dir, filepath.Join(log, strings.ReplaceAll(pkg, "/", "-")+"-"+name+".txt"))
			fmt.Fprintf(os.Stderr, "%s %s: %s, %d passed, %d failed, %.0f s\n", pkg, name, r.Ended, r.Passed,
				len(r.Failed), time.Since(began).Seconds())
			results[i] = r
		}
		if err := note(pkg, results); err != nil { // after each test: a run may be interrupted
			return err
		}
	}
	return nil
}

func note(pkg string, results []result) error {
	raw, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(resultsOf(pkg), append(raw, '\n'), 0o644)
}

func resultsOf(pkg string) string {
	return filepath.Join("testdata", "results", strings.ReplaceAll(pkg, "/", "-")+".json")
}

func read(pkg string) (out []result, err error) {
	raw, err := os.ReadFile(resultsOf(pkg))
	if os.IsNotExist(err) {
		return nil, os.MkdirAll(filepath.Dir(resultsOf(pkg)), 0o755)
	}
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// grace is how long a process may need to end after its test: upstream's main function stops etcd, and then waits until
// no goroutine is left.
const grace = 25 * time.Second

// output keeps the output of a test, and calls done once the test has ended.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	end  *regexp.Regexp
	done func()
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if o.done != nil && o.end.Match(o.text.Bytes()) {
		o.done()
		o.done = nil
	}
	return len(p), nil
}

// one runs one test.
func one(binary, name, dir, log string) result {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	temporary, err := os.MkdirTemp("", "seam")
	if err != nil {
		return result{Test: name, Ended: err.Error()}
	}
	defer os.RemoveAll(temporary)
	c := exec.CommandContext(ctx, binary, "-test.v", "-test.run", "^"+name+"$",
		"-test.timeout", (limit - 30*time.Second).String())
	c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+temporary)
	out := &output{end: regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): ` + name + ` \(`)}
	var late atomic.Bool
	out.done = func() { time.AfterFunc(grace, func() { late.Store(true); stop() }) }
	c.Stdout, c.Stderr, c.WaitDelay = out, out, time.Second
	failed := c.Run()
	text := out.text.String()
	if err := os.WriteFile(log, []byte(text), 0o644); err != nil {
		return result{Test: name, Ended: err.Error()}
	}
	r := parse(name, text)
	r.Leaks = late.Load() || strings.Contains(text, "EtcdMain goroutine check")
	if r.Ended == "" {
		r.Ended = fmt.Sprint("no answer: ", failed)
		if at := strings.Index(text, "panic: "); at >= 0 {
			r.Ended = firstLine(text[at:])
		}
	}
	return r
}

var (
	ended   = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)
	problem = regexp.MustCompile(`(?m)^ +(?:\w+_test|util)\.go:\d+: (.*)$`)
)

// parse reads the output of a test. A case is not one of another case; names of cases may have slashes.
func parse(name, out string) result {
	r := result{Test: name}
	cases := 0
	all := ended.FindAllStringSubmatch(out, -1)
	isCase := map[string]bool{} // name, with that of the test -> true
	for _, m := range all {
		isCase[m[2]] = true
	}
	inner := func(full string) bool {
		for at := len(name) + 1; at < len(full); at++ {
			if full[at] == '/' && isCase[full[:at]] {
				return true
			}
		}
		return false
	}
	for _, m := range all {
		one, is := strings.CutPrefix(m[2], name+"/")
		switch {
		case m[2] == name:
			r.Ended = strings.ToLower(m[1])
		case !is || inner(m[2]):
		case m[1] == "FAIL":
			cases++
			r.Failed = append(r.Failed, one)
		default:
			cases++
			r.Passed++
		}
	}
	switch {
	case r.Ended == "pass" && cases == 0:
		r.Passed = 1
	case r.Ended == "pass":
	default:
		if cases == 0 {
			r.Failed = []string{name}
		}
		if m := problem.FindStringSubmatch(out); m != nil {
			r.Why = firstLine(m[1])
		}
	}
	return r
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
