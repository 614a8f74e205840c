// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// MaxPods bounds the pods of a part. A writer drops more and counts them; a reader rejects more.
const MaxPods = 200_000

// maxPart bounds the bytes of a part that is read.
const maxPart = 512 << 20

// Pod has the times of one pod, in nanoseconds since the Unix epoch, by the clock of the recorder.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Created   int64  `json:"created"`
	// Bound is when a watch showed the pod's node; 0 if it did not. Invariant: 0 or at least Created.
	Bound int64 `json:"bound,omitempty"`
}

// Key returns namespace/name.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// Times are the pods of a recording.
type Times struct {
	// Created says what Pod.Created is: the beginning of the create call, or when a watch first showed the pod.
	Created Origin `json:"created"`
	// Dropped is the number of pods that exceeded MaxPods.
	Dropped int   `json:"dropped,omitempty"`
	Pods    []Pod `json:"pods"`
}

// Origin is where the time of a creation comes from.
type Origin string

// The origins. Times of different origins are not comparable: a watch shows a pod later than its creation.
const (
	FromCall  Origin = "create call"
	FromWatch Origin = "watch"
)

// Add adds a pod, or counts it as dropped.
func (t *Times) Add(p Pod) {
	if len(t.Pods) == MaxPods {
		t.Dropped++
		return
	}
	t.Pods = append(t.Pods, p)
}

// Write writes the part.
func (t *Times) Write(w io.Writer) error {
	if err := t.check(); err != nil {
		return fmt.Errorf("writing the times of pods: %w", err)
	}
	if err := json.NewEncoder(w).Encode(t); err != nil {
		return fmt.Errorf("writing the times of pods: %w", err)
	}
	return nil
}

// AddTo adds the times, which were observed since a moment, to a bundle.
func (t *Times) AddTo(w *bundle.Writer, since time.Time) error {
	var text bytes.Buffer
	if err := t.Write(&text); err != nil {
		return err
	}
	return w.Add(bundle.Part{Kind: bundle.Pods, Source: string(t.Created), Began: since.UTC(), Ended: time.Now().UTC()},
		&text)
}

// Read reads a part that Write wrote.
func Read(r io.Reader) (*Times, error) {
	var t Times
	if err := decode(r, &t); err != nil {
		return nil, fmt.Errorf("the times of pods: %w", err)
	}
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("the times of pods: %w", err)
	}
	return &t, nil
}

// decode decodes one JSON document of at most maxPart bytes.
func decode(r io.Reader, into any) error {
	d := json.NewDecoder(io.LimitReader(r, maxPart))
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("truncated or damaged: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows their end")
	}
	return nil
}

// plainName is the form of names in Kubernetes: lower-case DNS subdomains.
var plainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// checkNames returns an error unless both names are ones that Kubernetes accepts.
func checkNames(namespace, name string) error {
	if !plainName.MatchString(namespace) || !plainName.MatchString(name) {
		return fmt.Errorf("%.80q is not the name of a pod", namespace+"/"+name)
	}
	return nil
}

func (t *Times) check() error {
	switch {
	case t.Created != FromCall && t.Created != FromWatch:
		return fmt.Errorf("the origin %.80q of creations is unknown", t.Created)
	case len(t.Pods) > MaxPods || t.Dropped < 0:
		return fmt.Errorf("%d pods, %d dropped: the limit is %d", len(t.Pods), t.Dropped, MaxPods)
	}
	for i := range t.Pods {
		p := &t.Pods[i]
		if err := checkNames(p.Namespace, p.Name); err != nil {
			return err
		}
		if p.Created <= 0 || p.Bound != 0 && p.Bound < p.Created {
			return fmt.Errorf("pod %s is created at %d and bound at %d", p.Key(), p.Created, p.Bound)
		}
	}
	return nil
}
