// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

var update = flag.Bool("update", false, "write the results of scenarios into their files")

// A scenario is a text file: lines that start with > are what the queue did, all others are its input. Words:
//
//	config backoff=1 max=10 timeout=300 popfrombackoff=no oldestfirst=yes   seconds; these are the defaults, but pop
//	                                  from backoff is on, oldest first off
//	gate NAME                         a plugin that holds pods with gates=NAME or labels=NAME:shut
//	wake PLUGIN EVENT [HINT]          EVENT is Resource/Action[+Action] or *; HINT is a key of hints
//	tick SECONDS                      since the start of the scenario
//	add|update POD [key=value...]     prio cpu gates labels tolerations generation created nominated on; update keeps
//	                                  the rest
//	delete POD · pop · done POD · muster · take POD · waiting
//	watch POD PLUGIN...               events are tested for these plugins; reject ends it
//	reject POD PLUGIN... [pending=P+P] · fail POD · return POD · aside POD CAUSE
//	event EVENT [pod=POD] [node=NODE cpu=N] [upto=PRIORITY]
//	activate POD... · nominate POD NODE · unnominate POD · nominated NODE
//	place POD MEMBER... · stay POD · extras · rejoin POD [failed] · reconsider POD    POD names a gang by its first
//	                                  or any pod: gang= size= all= bad=
//	urgent POD · try POD              its gang skips its backoff; its gang is tried whatever its backoff
//	apart POD · together POD · pods POD      the pods of its group are scheduled one by one, or together; those that
//	                                  wait one by one
//	open GATE                         the gate holds no pod any more, without an event
//	freed                             nominations that have ended since
//	show · look POD
type story struct {
	cfg      Config
	profile  Profile
	q        *Queue
	pods     map[string]*cluster.Pod // name -> latest version
	known    map[string]attributes   // name -> its attributes
	versions int
	popped   map[string]*Unit // name of the first pod -> unit
	quorum   *quorum
	opened   map[string]bool // gate -> it holds no pod any more
	out      strings.Builder
}

// tell plays a story and returns its text with what the queue did.
func tell(text string) (told string, err error) {
	return tellWith(text, func(*story) error { return nil })
}

// tellResumed is tell with the queue restored after each line from its State, after a change of that.
func tellResumed(text string, change func(*State)) (told string, err error) {
	return tellWith(text, func(s *story) error { return s.resume(change) })
}

// tellWith is tell; after is called after each line.
func tellWith(text string, after func(*story) error) (told string, err error) {
	s := &story{
		cfg: Config{
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
			PopFromBackoff: true, Less: byPriority{},
		},
		pods: map[string]*cluster.Pod{}, known: map[string]attributes{}, popped: map[string]*Unit{},
		opened: map[string]bool{},
	}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		words := strings.Fields(line)
		if len(words) > 0 && words[0] == ">" {
			continue
		}
		s.out.WriteString(line + "\n")
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := s.do(words); err != nil {
			return "", fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
		if s.q != nil {
			if err := s.q.checkInvariants(); err != nil {
				return "", fmt.Errorf("line %d, %q: %w", i+1, line, err)
			}
		}
		if err := after(s); err != nil {
			return "", fmt.Errorf("after line %d, %q: %w", i+1, line, err)
		}
	}
	return s.out.String(), nil
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(&s.out, "> "+format+"\n", args...) }

func (s *story) do(words []string) error {
	if s.q == nil {
		if done, err := s.prepare(words); done || err != nil {
			return err
		}
		s.cfg.Profiles = map[string]Profile{"": s.profile}
		s.quorum = &quorum{placed: map[string]int{}, now: func() record.Time { return s.q.now },
			apart: map[string]bool{}, gates: s.profile.Gates}
		s.cfg.Gangs = s.quorum
		s.q = New(s.cfg)
		s.q.Tick(epoch)
	}
	if err := s.act(words[0], words[1:]); err != nil {
		return err
	}
	for _, m := range s.q.TakeMoves() {
		by := ""
		if m.Hint != "" {
			by = " by " + m.Hint
		}
		who := m.Pod.Name
		if m.Gang != "" {
			who = "gang " + m.Gang
		}
		s.say("%s %s: %s -> %s, %s%s (%s)", seconds(m.At), who, m.From, m.To, m.Event, by, m.Cause)
	}
	return nil
}

func seconds(t record.Time) string {
	return strconv.FormatFloat(float64(t-epoch)/float64(record.Second), 'f', -1, 64) + "s"
}

func parseSeconds(s string) (record.Time, error) {
	f, err := strconv.ParseFloat(s, 64)
	return record.Time(f * float64(record.Second)), err
}

// prepare takes the lines that describe the queue; done is false at the first other line.
func (s *story) prepare(words []string) (done bool, err error) {
	switch words[0] {
	case "config":
		return true, s.configure(parseAttributes(words[1:]))
	case "gate":
		s.profile.Gates = append(s.profile.Gates, openable{namedGate(words[1]), s.opened})
	case "wake":
		e, err := parseEvent(words[2])
		if err != nil {
			return true, err
		}
		hint := ""
		if len(words) > 3 {
			hint = words[3]
		}
		i := slices.IndexFunc(s.profile.Wakes, func(w PluginWakes) bool { return w.Plugin == words[1] })
		if i < 0 {
			i = len(s.profile.Wakes)
			s.profile.Wakes = append(s.profile.Wakes, PluginWakes{Plugin: words[1]})
		}
		s.profile.Wakes[i].Wakes = append(s.profile.Wakes[i].Wakes, plugin.Wake{Event: e, Hint: hints[hint],
			Alike: alikeHints[hint]})
	default:
		return false, nil
	}
	return true, nil
}

func (s *story) configure(a attributes) error {
	for key, to := range map[string]*record.Time{
		"backoff": &s.cfg.InitialBackoff, "max": &s.cfg.MaxBackoff, "timeout": &s.cfg.UnschedulableTimeout,
	} {
		if a[key] == "" {
			continue
		}
		t, err := parseSeconds(a[key])
		if err != nil {
			return err
		}
		*to = t
	}
	s.cfg.PopFromBackoff, s.cfg.OldestFirst = a["popfrombackoff"] != "no", a["oldestfirst"] == "yes"
	return nil
}

func (s *story) act(verb string, args []string) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch verb {
	case "tick":
		t, err := parseSeconds(name)
		if err != nil {
			return err
		}
		s.q.Tick(epoch + t)
	case "add", "update":
		s.setPod(verb, name, parseAttributes(args[1:]))
	case "delete":
		s.q.Delete(s.pods[name])
	case "pop":
		u, ok := s.q.Pop()
		if !ok {
			s.say("nothing to pop")
			return nil
		}
		s.popped[u.Pod().Name] = u
		s.say("popped %s, attempt %d", unitNames(u), u.Attempts)
	case "muster":
		var names []string
		for _, u := range s.q.ActivateAll() {
			names = append(names, unitNames(u))
		}
		s.say("in order: %s", strings.Join(names, " "))
	case "take":
		u, _, known := s.q.Lookup(s.pods[name].UID)
		if !known || !s.q.Take(u) {
			s.say("%s is not to be had", name)
			return nil
		}
		s.popped[u.Pod().Name] = u
		s.say("took %s, attempt %d", unitNames(u), u.Attempts)
	case "waiting":
		s.say("waiting: %v", s.q.Waiting())
	case "place":
		return s.place(name, args[1:])
	case "stay":
		s.say("needed before it: %v", s.q.Needed(s.popped[name]))
		s.q.Stay(s.popped[name])
	case "extras":
		s.q.ReconsiderExtras("what was kept for others may be free")
	case "rejoin":
		s.q.Rejoin(s.pods[name], Rejection{Err: len(args) > 1}, "it lost its place")
	case "apart", "together":
		key := s.pods[name].Gang.Key
		s.quorum.apart[key.Name] = verb == "apart"
		s.q.Regroup(key, "its pods are scheduled "+map[string]string{"apart": "one by one",
			"together": "together"}[verb])
	case "open":
		s.opened[name] = true
	case "pods":
		var names []string
		for _, p := range s.q.Apart(s.pods[name].Gang.Key) {
			names = append(names, p.Name)
		}
		s.say("one by one: %v; some wait: %v", names, s.q.HasGang(s.pods[name].Gang.Key))
	case "freed":
		for _, f := range s.q.TakeFreed() {
			s.say("%s for pods up to %d, %s had it", f.Node, f.Priority, f.Pod.Name)
		}
	case "urgent":
		s.q.SkipBackoff(s.pods[name].Gang.Key)
	case "try":
		s.q.TryGang(s.pods[name].Gang.Key, "it may hold capacity")
	case "reconsider":
		s.q.Reconsider(s.pods[name].Gang.Key, "the gang has changed")
	case "done":
		s.q.Done(s.pods[name].UID)
	case "watch":
		s.q.Watch(s.popped[name], args[1:])
	case "reject", "rest", "fail", "return", "aside":
		return s.end(verb, name, args[1:])
	case "event":
		return s.happen(args)
	case "activate":
		var refs []record.PodRef
		for _, n := range args {
			refs = append(refs, s.pods[n].Ref())
		}
		s.q.Activate(refs)
	case "nominate":
		s.q.Nominate(s.pods[name], args[1])
	case "unnominate":
		s.q.Unnominate(s.pods[name].UID)
	case "nominated":
		var names []string
		for _, p := range s.q.NominatedOn(name) {
			names = append(names, p.Name+"@"+p.ResourceVersion)
		}
		s.say("on %s: %s; all: %v", name, strings.Join(names, " "), s.q.NominatedNodes())
	case "show":
		s.show()
	case "look":
		s.look(name)
	default:
		return fmt.Errorf("unknown word %q", verb)
	}
	return nil
}

func (s *story) setPod(verb, name string, changes attributes) {
	a := s.known[name]
	if a == nil {
		a = attributes{}
		s.known[name] = a
	}
	for k, v := range changes {
		a[k] = v
	}
	s.versions++
	old := s.pods[name]
	s.pods[name] = a.pod(name, s.versions)
	if verb == "add" {
		s.q.Add(s.pods[name])
	} else {
		s.q.Update(old, s.pods[name])
	}
}

// place gives members of a popped gang a place.
func (s *story) place(name string, members []string) error {
	u := s.popped[name]
	if u == nil {
		return fmt.Errorf("%s was not popped", name)
	}
	s.quorum.placed[u.Gang.Name] += len(members)
	placed := map[cluster.UID]bool{}
	for _, member := range members {
		placed[cluster.UID("uid-"+member)] = true
	}
	left := s.q.Part(u, placed)
	s.say("some are left: %v", left)
	return nil
}

// end ends the attempt of a unit that was popped.
func (s *story) end(verb, name string, args []string) error {
	u := s.popped[name]
	if u == nil {
		return fmt.Errorf("%s was not popped", name)
	}
	switch verb {
	case "fail":
		s.q.Requeue(u, Rejection{Err: true})
	case "rest":
		s.say("popped early: %v", u.Early())
		s.q.Rest(u, args)
	case "return":
		s.q.Return(u)
	case "aside":
		s.q.SetAside(u, strings.Join(args, " "))
	default:
		var why Rejection
		for _, w := range args {
			if pending, ok := strings.CutPrefix(w, "pending="); ok {
				why.Pending = strings.Split(pending, "+")
				continue
			}
			why.Plugins = append(why.Plugins, w)
		}
		why.Watched = s.q.EndWatch(u)
		s.q.Requeue(u, why)
	}
	return nil
}

func (s *story) happen(args []string) error {
	e, err := parseEvent(args[0])
	if err != nil {
		return err
	}
	a := parseAttributes(args[1:])
	ch := plugin.Change{Event: e}
	if a["node"] != "" {
		n := &cluster.Node{Name: a["node"]}
		n.Allocatable.MilliCPU = a.number("cpu")
		if ch.NewNode = n; e.Action == plugin.Delete {
			ch.NewNode, ch.OldNode = nil, n
		}
	}
	if a["pod"] != "" {
		if ch.NewPod = s.pods[a["pod"]]; e.Action == plugin.Delete {
			ch.NewPod, ch.OldPod = nil, ch.NewPod
		}
	}
	if a["upto"] != "" {
		upTo := int32(a.number("upto"))
		ch.OnlyUpTo = &upTo
	}
	s.q.Happened(ch)
	return nil
}

func (s *story) show() {
	counts := s.q.Counts()
	for _, sub := range []record.SubQueue{record.Active, record.Backoff, record.Unschedulable, record.Gated,
		record.InFlight} {
		if counts[sub] == 0 {
			continue
		}
		var names []string
		s.q.Each(sub, func(u *Unit) { names = append(names, unitNames(u)) })
		s.say("%s %d: %s", sub, counts[sub], strings.Join(names, " "))
	}
	next := "no tick wanted"
	if t, ok := s.q.NextTick(); ok {
		next = "next tick " + seconds(t)
	}
	s.say("ready %v, %s, in-flight list %d", s.q.Ready(), next, s.q.InFlightEvents())
}

func (s *story) look(name string) {
	u, sub, ok := s.q.Lookup(s.pods[name].UID)
	if !ok {
		s.say("%s is %s", name, sub)
		return
	}
	line := fmt.Sprintf("%s is %s: attempts %d, rejected %d, errors %d, since %s",
		name, sub, u.Attempts, u.UnschedulableCount, u.ErrorCount, seconds(u.Since))
	if u.BackoffUntil != 0 {
		line += ", backoff until " + seconds(u.BackoffUntil)
	}
	if u.FirstActive != 0 {
		line += ", first active " + seconds(u.FirstActive)
	}
	for _, part := range [][2]string{
		{"plugins", strings.Join(u.Plugins, "+")}, {"pending", strings.Join(u.Pending, "+")},
		{"gate", u.Gate}, {"aside", u.Aside},
	} {
		if part[1] != "" {
			line += ", " + part[0] + " " + part[1]
		}
	}
	if u.Flushed {
		line += ", flushed"
	}
	s.say("%s", line)
}

// unitNames are a unit's pods, with the gang's name if it is one.
func unitNames(u *Unit) string {
	if u.Gang == (cluster.GangKey{}) {
		return u.Pod().Name
	}
	var names []string
	for _, p := range u.Members {
		names = append(names, p.Name)
	}
	return u.Gang.Name + "[" + strings.Join(names, " ") + "]"
}

func stories(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	return files
}

// Every story in testdata happens as it is written.
func TestStories(t *testing.T) {
	for _, file := range stories(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			told, err := tell(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if told == string(text) {
				return
			}
			if !*update {
				t.Fatalf("%s happens differently (run with -update to take it over):\n%s", file,
					firstDifference(string(text), told))
			}
			if err := os.WriteFile(file, []byte(told), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := 0; i < len(w) || i < len(g); i++ {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a, b)
		}
	}
	return ""
}
