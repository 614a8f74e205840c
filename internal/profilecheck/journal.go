// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// Result is one injection.
type Result struct {
	// Programs identifies the programs with which it was measured. Rules identifies the program whose rules were
	// applied to the kept profile later; empty if the verdict was made when it was recorded.
	Programs  string             `json:"programs"`
	Rules     string             `json:"reanalysedBy,omitempty"`
	Scheduler string             `json:"scheduler"`
	Name      string             `json:"case"`
	Injected  bottleneck.Cause   `json:"injected"`
	Seed      uint64             `json:"seed"`
	Strength  string             `json:"strength"`
	Verdict   bottleneck.Verdict `json:"verdict"`
	Gain      *Gain              `json:"gain,omitempty"`
	Baseline  *Baseline          `json:"baseline,omitempty"`
	Error     string             `json:"error,omitempty"`
	Seconds   float64            `json:"seconds"`
}

// notKnown is what is named if no cause is, and failed if the injection did not end.
const (
	notKnown = "not known"
	failed   = "failed"
)

// Named is the cause that was named.
func (r *Result) Named() string {
	switch {
	case r.Error != "" && len(r.Verdict.Findings) == 0:
		return failed
	case !r.Verdict.Known:
		return notKnown
	}
	return r.Verdict.Findings[0].Cause.String()
}

// Right reports whether the injected cause is named first; without an injection, a limit that the no-op binder meets
// too.
func (r *Result) Right() bool {
	switch {
	case !r.Verdict.Known:
		return false
	case r.Baseline != nil:
		return r.Baseline.meets(r.Verdict.Findings[0].Cause)
	}
	return r.Verdict.Findings[0].Cause == r.Injected
}

// Wrong reports whether another cause than the injected one is named first.
func (r *Result) Wrong() bool { return r.Verdict.Known && !r.Right() }

// Journal keeps results in a file, one on each line, so that a check can go on after an abort.
type Journal struct {
	name     string
	programs string
	Results  []Result
}

// maxLine bounds a line of a journal.
const maxLine = 1 << 20

// OpenJournal reads the results in a file, if there is one. Those of other programs are left alone, and not used. A
// last line without its end is of an abort, and is removed.
func OpenJournal(name, programs string) (*Journal, error) {
	j := &Journal{name: name, programs: programs}
	list, whole, err := readResults(name)
	if errors.Is(err, os.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(name); err == nil && whole < info.Size() {
		if err := os.Truncate(name, whole); err != nil {
			return nil, fmt.Errorf("removing half a result: %w", err)
		}
	}
	j.Results = slices.DeleteFunc(list, func(r Result) bool { return r.Programs != programs || r.Rules != "" })
	return j, nil
}

// ReadResults reads the results of all programs in a file, and changes nothing in it.
func ReadResults(name string) ([]Result, error) {
	list, _, err := readResults(name)
	return list, err
}

// readResults also returns where the last whole line ends.
func readResults(name string) (list []Result, whole int64, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, 0, fmt.Errorf("reading results: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var r Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, 0, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		list = append(list, r)
	}
	if err := lines.Err(); err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", name, err)
	}
	return list, int64(len(text)), nil
}

// WriteResults writes results into a file, in place of what it has.
func WriteResults(name string, list []Result) error {
	var out bytes.Buffer
	for i := range list {
		line, err := json.Marshal(&list[i])
		if err != nil {
			return fmt.Errorf("encoding a result: %w", err)
		}
		out.Write(append(line, '\n'))
	}
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("keeping results: %w", err)
	}
	return nil
}

// has reports whether an injection is there. Failed ones are made again.
func (j *Journal) has(scheduler, name string, seed uint64) bool {
	for i := range j.Results {
		r := &j.Results[i]
		if r.Scheduler == scheduler && r.Name == name && r.Seed == seed && r.Error == "" {
			return true
		}
	}
	return false
}

// add adds a result at the end of the file.
func (j *Journal) add(r Result) error {
	r.Programs = j.programs
	j.Results = append(j.Results, r)
	line, err := json.Marshal(&r)
	if err != nil {
		return fmt.Errorf("encoding a result: %w", err)
	}
	f, err := os.OpenFile(j.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keeping a result: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keeping a result: %w", err)
	}
	return nil
}

// Programs identifies programs by their content.
func Programs(names ...string) (string, error) {
	sum := sha256.New()
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("identifying the programs: %w", err)
		}
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("identifying %s: %w", name, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
