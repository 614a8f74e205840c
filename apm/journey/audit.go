// SPDX-License-Identifier: Apache-2.0

package journey

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Limits of an audit log: bytes of a line, and events that are kept.
const (
	maxAuditLine   = 16 << 20
	maxAuditEvents = 2 << 20
)

// Event is what is read of an event of an audit log (audit.k8s.io/v1). Of the object in an answer only the name and the
// UID are read, which objectRef does not have of a pod with a generated name: the rest is not for a profile.
type Event struct {
	AuditID string `json:"auditID"`
	Stage   string `json:"stage"`
	Verb    string `json:"verb"`
	User    struct {
		Username string `json:"username"`
	} `json:"user"`
	Object *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource,omitempty"`
		Namespace   string `json:"namespace,omitempty"`
		Name        string `json:"name,omitempty"`
		UID         string `json:"uid,omitempty"`
	} `json:"objectRef,omitempty"`
	Answer *struct {
		Metadata struct {
			Name string `json:"name"`
			UID  string `json:"uid"`
		} `json:"metadata"`
	} `json:"responseObject,omitempty"`
	Status *struct {
		Code int `json:"code"`
	} `json:"responseStatus,omitempty"`
	// Received is when the server received the request, Ended when this stage was reached; both in microseconds.
	Received time.Time `json:"requestReceivedTimestamp"`
	Ended    time.Time `json:"stageTimestamp"`
}

// createsPod reports whether an event is that of a pod that was created.
func (e *Event) createsPod() bool {
	return e.Verb == "create" && e.Object != nil && e.Object.Resource == "pods" && e.Object.Subresource == "" &&
		(e.Status == nil || e.Status.Code/100 == 2)
}

// identify takes name and UID of a created object from the answer.
func (e *Event) identify() {
	if e.Answer != nil && e.Object != nil {
		e.Object.Name = cmp.Or(e.Object.Name, e.Answer.Metadata.Name)
		e.Object.UID = cmp.Or(e.Object.UID, e.Answer.Metadata.UID)
	}
	e.Answer = nil
}

// Log is what an audit log says about pods that were created and requests of the scheduler.
type Log struct {
	// requests has the events of writes by the scheduler: audit ID -> event.
	requests map[string]Event
	created  map[podName][]Event // namespace and name -> pods that were created, in the order of the log
	lines    int
	broken   int // lines that are no events
	nameless int // pods that were created, without their names
}

type podName struct{ namespace, name string }

// ReadLog reads an audit log, one event of JSON a line, and keeps the events of the requests of a scheduler and of pods
// that were created. Lines that are no events are counted.
func ReadLog(from io.Reader, t *record.Timing) (*Log, error) {
	ours := make(map[string]bool, len(t.Requests)) // audit ID -> it is a request of the scheduler
	for _, q := range t.Requests {
		ours[q.AuditID] = true
	}
	l := &Log{requests: map[string]Event{}, created: map[podName][]Event{}}
	in := bufio.NewScanner(from)
	in.Buffer(nil, maxAuditLine)
	kept := 0
	for in.Scan() {
		if len(in.Bytes()) == 0 {
			continue
		}
		l.lines++
		var e Event
		if json.Unmarshal(in.Bytes(), &e) != nil || e.AuditID == "" || e.Stage == "" {
			l.broken++
			continue
		}
		if e.Stage != "ResponseComplete" || e.Received.IsZero() || e.Ended.Before(e.Received) {
			continue
		}
		e.identify()
		switch {
		case ours[e.AuditID]:
			l.requests[e.AuditID] = e
		case e.createsPod() && e.Object.Name == "":
			l.nameless++
			continue
		case e.createsPod():
			at := podName{e.Object.Namespace, e.Object.Name}
			l.created[at] = append(l.created[at], e)
		default:
			continue
		}
		if kept++; kept > maxAuditEvents {
			return nil, fmt.Errorf("the audit log has more than %d events of pods and of the scheduler", maxAuditEvents)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	if l.lines == l.broken {
		return nil, errors.New("the file contains no event of an audit log (audit.k8s.io, one JSON object a line)")
	}
	return l, nil
}

// WriteTo writes the events that were kept, without what is not needed of them.
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	n := int64(0)
	write := func(e Event) error {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		k, err := w.Write(append(text, '\n'))
		n += int64(k)
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(l.requests)) {
		if err := write(l.requests[id]); err != nil {
			return n, err
		}
	}
	names := slices.SortedFunc(maps.Keys(l.created), func(a, b podName) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for _, name := range names {
		for _, e := range l.created[name] {
			if err := write(e); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// Offset is by how much the API server's clock is ahead of the scheduler's: at least Least and at most Most, in
// nanoseconds, as bounded by a number of Requests.
type Offset struct {
	Least    record.Time `json:"least"`
	Most     record.Time `json:"most"`
	Requests int         `json:"requests"`
}

// resolution is that of times in an audit log, which are cut to microseconds.
const resolution = record.Time(time.Microsecond)

// Offset computes the offset of the clocks. It is an error if no request is known to both sides, or if no offset fits
// all of them: a clock was set in between.
func (l *Log) Offset(t *record.Timing) (Offset, error) {
	o := Offset{Least: math.MinInt64, Most: math.MaxInt64}
	for i := range t.Requests {
		q := &t.Requests[i]
		e, known := l.requests[q.AuditID]
		if !known || q.Status == 0 { // without an answer there is no upper bound
			continue
		}
		received := record.Time(e.Received.UnixNano())
		released := q.Start + q.Throttle
		o.Least = max(o.Least, received-(released+q.Connect+q.Send+q.Server))
		o.Most = min(o.Most, received+resolution-released)
		o.Requests++
	}
	switch {
	case o.Requests == 0:
		return Offset{}, fmt.Errorf("the audit log has none of the %d requests of the scheduler: it is of another API "+
			"server or another time, or its policy does not log the scheduler's user", len(t.Requests))
	case o.Least > o.Most:
		return Offset{}, fmt.Errorf("no offset of the clocks fits all %d requests: the clock of the API server or of "+
			"the scheduler was set meanwhile", o.Requests)
	}
	return o, nil
}

// Join sets how long pods took from their commit to their first observation, or why that is not known.
func (l *Log) Join(t *record.Timing) (Offset, error) {
	o, err := l.Offset(t)
	if err != nil {
		return o, err
	}
	for i := range t.Journeys {
		j := &t.Journeys[i]
		j.Arriving, j.ArrivingWhy = l.arriving(j, o)
	}
	return o, nil
}

func (l *Log) arriving(j *record.Journey, o Offset) (*record.Interval, string) {
	e, why := l.creationOf(j)
	if e == nil {
		return nil, why
	}
	// The commit is between the two times of the event.
	earliest := record.Time(e.Received.UnixNano()) - o.Most
	latest := record.Time(e.Ended.UnixNano()) + resolution - o.Least
	if earliest > j.Began {
		return nil, "the audit log has the pod created after the scheduler observed it: it is of another cluster, or " +
			"a clock was set"
	}
	return &record.Interval{Least: max(0, j.Began-latest), Most: j.Began - earliest}, ""
}

// creationOf returns the event of a pod's creation: by its UID, or if the log has none, the only one of its name.
func (l *Log) creationOf(j *record.Journey) (*Event, string) {
	list := l.created[podName{j.Pod.Namespace, j.Pod.Name}]
	for i := range list {
		if list[i].Object.UID != "" && list[i].Object.UID == j.Pod.UID {
			return &list[i], ""
		}
	}
	switch {
	case len(list) == 0 && l.nameless > 0:
		return nil, fmt.Sprintf("the audit log does not have the creation of the pod under its name; %d pods in it "+
			"have no name: generated names are in answers, which it has at level RequestResponse", l.nameless)
	case len(list) == 0:
		return nil, "the audit log does not have the creation of the pod under its name"
	case len(list) > 1:
		return nil, fmt.Sprintf("the audit log has %d creations of pods of this name, without their UID", len(list))
	case list[0].Object.UID != "":
		return nil, "the audit log has the creation of another pod of this name"
	}
	return &list[0], ""
}
