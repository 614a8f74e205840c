// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Version is the format version that this package writes, and the newest that it reads.
const Version = 1

// format marks the manifest, so that another zip archive is recognised as such.
const format = "kumiki-bundle"

// manifestName is the file name of the manifest in the archive.
const manifestName = "manifest.json"

// Kind is what a part contains.
type Kind string

// The kinds of parts. Readers ignore kinds that they do not know.
const (
	// Trace is a Go execution trace, with CPU samples if the CPU was profiled at the same time.
	Trace Kind = "go-trace"
	// CPU and Allocs are profiles in the format of pprof. Allocs has the allocations between two moments.
	CPU    Kind = "cpu-profile"
	Allocs Kind = "allocs-profile"
	// MetricsBefore and MetricsAfter are the answers of /metrics, as text.
	MetricsBefore Kind = "metrics-before"
	MetricsAfter  Kind = "metrics-after"
	// Pods has when pods were created and bound, as package pods writes it.
	Pods Kind = "pod-times"
	// Timing is kumiki's own record of the phases of pods, record.Timing as JSON.
	Timing Kind = "timing"
	// Audit has the events of the API server's audit log about created pods and requests of the scheduler.
	Audit Kind = "audit-log"
	// Work is the amounts of work, CPU time and waste of kumiki's core during the recording (record.WorkReport).
	Work Kind = "work"
	// Samples is the state of the scheduler at short intervals, as package samples writes it.
	Samples Kind = "samples"
	// Incident is why the bundle of an incident was written, as JSON.
	Incident Kind = "incident"
	// Recording is a recording (app/command/tape) without effects, and Digests their digests: eight bytes for each
	// event, little-endian.
	Recording Kind = "recording"
	Digests   Kind = "digests"
	// Metrics is the answer of /metrics when an incident was found, Goroutines the stacks of all goroutines, as text.
	Metrics    Kind = "metrics"
	Goroutines Kind = "goroutines"
)

// Manifest describes a bundle.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Tool is the program and version that wrote the bundle.
	Tool string `json:"tool"`
	// Scheduler is the scheduler that was recorded: its identity in the lease, its pod or its address.
	Scheduler string    `json:"scheduler"`
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	// Seconds is the duration that was asked for.
	Seconds int    `json:"seconds"`
	Parts   []Part `json:"parts"`
}

// Part is one recorded document, or the reason why it could not be recorded.
type Part struct {
	Kind Kind `json:"kind"`
	// Name is the file name in the archive; empty for a missing part.
	Name string `json:"name,omitempty"`
	// Source is the path of the request whose answer the part is.
	Source string    `json:"source"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256,omitempty"`
	// Missing is why there is no such part; empty for a part that is there.
	Missing string `json:"missing,omitempty"`
}

// Limits bound what a reader accepts. All sizes are in bytes after decompression.
type Limits struct {
	Files                 int
	Manifest, Part, Total int64
	// Ratio is the largest accepted ratio of a size before and after compression, for parts above 1 MiB.
	Ratio int64
}

// DefaultLimits are far above what a recording of a minute needs.
var DefaultLimits = Limits{Files: 64, Manifest: 1 << 20, Part: 2 << 30, Total: 4 << 30, Ratio: 200}

// plainName is the form of file names. It excludes separators, so that a name cannot leave a directory.
var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// check returns an error unless a manifest is one that this package reads.
func (m *Manifest) check(l Limits) error {
	switch {
	case m.Format != format:
		return errors.New("the manifest is not that of a kumiki bundle")
	case m.Version < 1:
		return fmt.Errorf("format version %d does not exist", m.Version)
	case m.Version > Version:
		return fmt.Errorf("format version %d is newer than this program, which reads versions up to %d: use a newer "+
			"kumiki", m.Version, Version)
	case len(m.Parts) > l.Files:
		return fmt.Errorf("%d parts are more than the limit of %d", len(m.Parts), l.Files)
	}
	kinds, names := map[Kind]bool{}, map[string]bool{} // kind, file name -> a part has it
	total := int64(0)
	for _, p := range m.Parts {
		if kinds[p.Kind] {
			return fmt.Errorf("two parts have the kind %q", p.Kind)
		}
		kinds[p.Kind] = true
		if p.Missing != "" {
			continue
		}
		switch {
		case !plainName.MatchString(p.Name) || p.Name == manifestName:
			return fmt.Errorf("the name %q of a part is not a plain file name", p.Name)
		case names[p.Name]:
			return fmt.Errorf("two parts have the name %q", p.Name)
		case p.Size < 0 || p.Size > l.Part:
			return fmt.Errorf("part %s has %d bytes, more than the limit of %d", p.Name, p.Size, l.Part)
		}
		names[p.Name] = true
		if total += p.Size; total > l.Total {
			return fmt.Errorf("the parts have more than %d bytes", l.Total)
		}
	}
	return nil
}
