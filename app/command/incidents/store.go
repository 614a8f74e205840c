// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/answers"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	// inMemory is how many bundles are kept in memory, and memoryBytes the largest of them.
	inMemory    = 2
	memoryBytes = 32 << 20
	// listed is how many incidents are listed, with those whose bundle is not there any more.
	listed = 100
)

// Options say what a Store does.
type Options struct {
	// Dir is where bundles are kept besides those in memory; empty for nowhere. MaxFiles and MaxBytes bound what is in
	// it; the oldest are removed.
	Dir      string
	MaxFiles int
	MaxBytes int64
	// Config and Timeout are what the engine was made with, Tool the program and its version, Scheduler its identity.
	Config          config.Resolved
	Timeout         time.Duration
	Hosted          *answers.Host // the plugins of kube-scheduler's framework that the engine has; nil for none
	Tool, Scheduler string
	// Count is called for each incident; may be nil.
	Count func(incident.Cause)
	// Metrics writes what /metrics answers; nil for none.
	Metrics func(io.Writer) error
}

// Store turns incidents into bundles and keeps them.
type Store struct {
	opts   Options
	flight *incident.Flight
	quota  incident.Quota
	trace  *goTrace
	create func() (*os.File, error) // makes a file that is renamed when it is complete
	lost   atomic.Bool              // the process ends because it lost its lease

	writing sync.Mutex // one bundle at a time: encoding sorts the State

	mu     sync.Mutex
	list   []record.Incident
	memory []kept
	made   int
}

type kept struct {
	id   string
	data []byte
}

// New returns a store of what a flight recorder finds.
func New(f *incident.Flight, o Options) *Store {
	s := &Store{opts: o, flight: f, quota: incident.Quota{Period: incident.QuotaPeriod}, trace: &goTrace{},
		create: func() (*os.File, error) { return os.CreateTemp(o.Dir, unfinished+"*") }}
	s.readDir()
	return s
}

// Run writes bundles until ctx ends, and then those of what was found before.
func (s *Store) Run(ctx context.Context) {
	s.trace.start()
	defer s.trace.stop()
	for {
		select {
		case <-ctx.Done():
			s.end(context.WithoutCancel(ctx))
			return
		case f := <-s.flight.Found():
			s.found(ctx, f)
		}
	}
}

func (s *Store) found(ctx context.Context, f incident.Finding) {
	s.count(f.Cause)
	if s.quota.Allow(f) {
		s.Write(ctx, f)
	}
}

// LeaseLost notes that the process ends because it lost its lease. It must be called after the loop has ended, and
// before the context of Run ends.
func (s *Store) LeaseLost() { s.lost.Store(true) }

// end handles the last findings of a process. Without a directory nothing would be left of a bundle, so that the log
// has a lost lease alone.
func (s *Store) end(ctx context.Context) {
	var lost incident.Finding
	if s.lost.Load() {
		lost = s.flight.Lost(record.Time(time.Now().UnixNano()))
	}
	if s.opts.Dir == "" {
		if lost.Cause != "" {
			klog.FromContext(ctx).WithName("incidents").Info("Incident: there is no bundle, since no --incident-dir "+
				"outlasts the process", "cause", lost.Cause, "detail", lost.Detail, "took", lost.Took)
		}
		return
	}
	for {
		select {
		case f := <-s.flight.Found():
			s.found(ctx, f)
			continue
		default:
		}
		break
	}
	if lost.Cause != "" {
		s.found(ctx, lost)
	}
}

func (s *Store) count(c incident.Cause) {
	if s.opts.Count != nil {
		s.opts.Count(c)
	}
}

// Write writes the bundle of an incident and keeps it. What goes wrong is in the result and in the log.
func (s *Store) Write(ctx context.Context, f incident.Finding) record.Incident {
	s.writing.Lock()
	defer s.writing.Unlock()
	began := time.Now()
	in := record.Incident{ID: s.id(f), Cause: string(f.Cause), Text: f.Cause.Text(),
		At: time.Unix(0, int64(f.At)).UTC(), Took: f.Took, Detail: f.Detail}
	var data bytes.Buffer
	err := s.bundle(&data, &in)
	if in.Size = int64(data.Len()); err == nil {
		err = s.keep(&in, data.Bytes())
	}
	in.Wrote = time.Since(began)
	log := klog.FromContext(ctx).WithName("incidents")
	if err != nil {
		in.Error = err.Error()
		log.Error(err, "Incident: its bundle is lost", "id", in.ID, "cause", in.Cause, "detail", in.Detail)
	} else {
		log.Info("Incident: a bundle was written", "id", in.ID, "cause", in.Cause, "detail", in.Detail, "took", in.Took,
			"file", in.File, "bytes", in.Size, "seconds", in.Wrote.Seconds())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list = append(s.list, in); len(s.list) > listed {
		s.list = slices.Delete(s.list, 0, len(s.list)-listed)
	}
	return in
}

// plainID is the form of the names of bundles.
var plainID = regexp.MustCompile(`^[0-9]{8}t[0-9]{6}z-[a-z-]{1,32}-[0-9]{1,9}$`)

// id returns a name for a bundle that sorts by time.
func (s *Store) id(f incident.Finding) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Unix(0, int64(f.At)).UTC().Format("20060102t150405z")
	for {
		s.made++
		id := fmt.Sprintf("%s-%s-%d", at, f.Cause, s.made)
		if s.opts.Dir == "" {
			return id
		}
		// A former process may have written one in the same second, and the clock may have been set back.
		if _, err := os.Lstat(filepath.Join(s.opts.Dir, id+extension)); err != nil {
			return id
		}
	}
}

// keep keeps a bundle in the directory, and in memory if it is small enough.
func (s *Store) keep(in *record.Incident, data []byte) error {
	var failed error
	if s.opts.Dir != "" {
		in.File = filepath.Join(s.opts.Dir, in.ID+extension)
		if failed = s.save(in.File, data); failed != nil {
			in.File = ""
		}
	}
	if len(data) > memoryBytes {
		if in.File == "" {
			return errors.Join(failed, fmt.Errorf("%d bytes are more than the %d that are kept in memory", len(data),
				memoryBytes))
		}
		return nil
	}
	if failed != nil {
		klog.Background().Error(failed, "The bundle is kept in memory alone", "id", in.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory = append(s.memory, kept{in.ID, data}); len(s.memory) > inMemory {
		s.memory = slices.Delete(s.memory, 0, len(s.memory)-inMemory)
	}
	return nil
}

const extension = ".kumiki"

// unfinished is how the names of files begin that are being written.
const unfinished = ".incident-"

// save writes a file that appears with its whole content or not at all. The oldest ones are removed only then: a disk
// that is full costs the new one alone.
func (s *Store) save(name string, data []byte) error {
	if int64(len(data)) > s.opts.MaxBytes {
		return fmt.Errorf("%d bytes are more than the %d of the directory", len(data), s.opts.MaxBytes)
	}
	file, err := s.create()
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = s.prune(s.opts.MaxFiles-1, s.opts.MaxBytes-int64(len(data)))
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

// bundles returns the bundles in the directory, the oldest first, with their sizes.
func (s *Store) bundles() (names []string, sizes []int64, err error) {
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries { // ReadDir sorts by name, which begins with the time
		id, is := strings.CutSuffix(e.Name(), extension)
		info, err := e.Info()
		if !is || !plainID.MatchString(id) || err != nil || !info.Mode().IsRegular() {
			continue
		}
		names, sizes = append(names, id), append(sizes, info.Size())
	}
	return names, sizes, nil
}

// prune removes the oldest bundles, so that there are at most so many files and bytes.
func (s *Store) prune(files int, size int64) error {
	names, sizes, err := s.bundles()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, n := range sizes {
		total += n
	}
	for i := 0; i < len(names) && (len(names)-i > files || total > size); i++ {
		if err := os.Remove(filepath.Join(s.opts.Dir, names[i]+extension)); err != nil {
			return err
		}
		total -= sizes[i]
	}
	return nil
}

// abandoned is how old a file that is being written must be to be that of a process that ended meanwhile.
const abandoned = 10 * time.Minute

// sweep removes files that a former process did not finish.
func (s *Store) sweep() {
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		return // readDir reports it
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), unfinished) || time.Since(info.ModTime()) < abandoned {
			continue
		}
		os.Remove(filepath.Join(s.opts.Dir, e.Name())) // it stays until the next start
	}
}

// readDir lists the bundles of former processes.
func (s *Store) readDir() {
	if s.opts.Dir == "" {
		return
	}
	s.sweep()
	names, sizes, err := s.bundles()
	if err != nil {
		klog.Background().Error(err, "Incidents of former processes cannot be listed", "dir", s.opts.Dir)
	}
	for i, id := range names {
		file := filepath.Join(s.opts.Dir, id+extension)
		in, err := Read(file)
		if err != nil {
			in.ID, in.Error = id, err.Error()
		}
		in.ID, in.File, in.Size = id, file, sizes[i]
		s.list = append(s.list, in)
		s.quota.Note(incident.Cause(in.Cause), record.Time(in.At.UnixNano()))
	}
}

// List returns the incidents whose bundles can be read or could not be written, the oldest first.
func (s *Store) List() record.Incidents {
	s.mu.Lock()
	list := slices.Clone(s.list)
	s.mu.Unlock()
	out := record.Incidents{Incidents: []record.Incident{}}
	for _, in := range list {
		if in.Error == "" {
			content, err := s.Open(in.ID)
			if err != nil {
				continue // it was removed for newer ones
			}
			content.Close()
		}
		out.Incidents = append(out.Incidents, in)
	}
	return out
}

// ErrUnknown means that there is no such bundle, or not any more.
var ErrUnknown = errors.New("no such incident, or its bundle was removed for newer ones")

// Open returns a bundle.
func (s *Store) Open(id string) (io.ReadCloser, error) {
	if !plainID.MatchString(id) {
		return nil, ErrUnknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.memory {
		if k.id == id {
			return io.NopCloser(bytes.NewReader(k.data)), nil
		}
	}
	if s.opts.Dir == "" {
		return nil, ErrUnknown
	}
	file, err := os.Open(filepath.Join(s.opts.Dir, id+extension))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrUnknown
	}
	return file, err
}
