// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strings"
)

// Exception is a difference by design.
type Exception struct {
	Name string
	// Why is the reason, for people.
	Why string
	// explains reports whether this is the reason of a difference. plugins says which plugin an entry of
	// pluginConfig is for: path of the entry -> plugin.
	explains func(difference string, plugins map[string]string) bool
}

// Exceptions are all differences that Compare lets pass. docs/compatibility.md says them in prose.
var Exceptions = []Exception{
	{"client limits", "qps and burst limit only when they are written down; binds in flight are bounded instead",
		matches(`^clientConnection\.(qps: 50, 0|burst: 100, 0)$`)},
	{"candidates for preemption", "every node is looked at unless a file says how many are enough",
		matches(`^profiles\[\d+\]\.args\.DefaultPreemption\.minCandidateNodesPercentage: 10, 100$`)},
	{"our own settings", "upstream does not look at pluginConfig of the name Kumiki; we read it as strictly as the rest", ownSettings},
	{"arguments of nobody", "arguments for a plugin that does not exist are refused: in upstream a typing error loses them in silence",
		alone(`\.pluginConfig\[\d+\]\.name: (unknown plugin|a plugin name is required)`)},
	{"arguments of a plugin that is off", "they are checked all the same; upstream overlooks those of NodeResourcesFit, whose check has the wrong name in its table",
		fitArguments},
	{"enabled twice at multiPoint", "refused wherever it stands; upstream does not see it where every point of the plugin says it again",
		alone(`\.multiPoint\.enabled\[\d+\]\.name: plugin "\w+" is enabled twice`)},
	{"negative weights", "a weight below 0 is refused wherever it stands; upstream overlooks those that do not score",
		alone(`\.enabled\[\d+\]\.weight: must not be negative`)},
	{"long times", "times in seconds that do not fit a duration are refused; in upstream they wrap",
		matches(`(podInitialBackoffSeconds|podMaxBackoffSeconds|bindTimeoutSeconds)(: must be .*at most \d+|$)`)},
	{"negative time-out of an extender", "refused: upstream then waits for an extender without end", alone(`^extenders\[\d+\]\.httpTimeout: must not be negative`)},
	{"the lock of no election", "the kind of lock is not kept where leaderElect is false", matches(`^leaderElection\.resourceLock: ".*", "leases"$`)},
	{"files of an extender's TLS", "read when the scheduler starts, so that a file can be checked on another machine", matches(upstreamAlone + `couldn't build extenders: open `)},
	{"remedies of groups alone",
		"upstream does not start where a plugin with arguments is enabled at podGroupPostFilter alone: it sets no default arguments",
		matches(upstreamAlone + `.*initializing plugin "(DefaultPreemption|DynamicResources)": got args of type`)},
	{"ignored resources without NodeResourcesFit", "an extender's ignored resource means nothing where NodeResourcesFit is off; upstream does not start",
		matches(upstreamAlone + `couldn't build extenders: can't find NodeResourcesFitArgs`)},
	{"arguments for the order of the queue", "PrioritySort takes none, so profiles cannot differ in them; a warning says so",
		matches(upstreamAlone + `.*(different queue sort plugin args|queueSort must be the same for all profiles)|about profiles\[\d+\]\.pluginConfig\.args$`)},
}

func matches(pattern string) func(string, map[string]string) bool {
	re := regexp.MustCompile(pattern)
	return func(difference string, _ map[string]string) bool { return re.MatchString(difference) }
}

// alone returns a function that reports whether a file is one that only kumiki rejects.
func alone(pattern string) func(string, map[string]string) bool {
	re := regexp.MustCompile(pattern)
	return func(difference string, _ map[string]string) bool {
		problem, ok := strings.CutPrefix(difference, kumikiAlone)
		return ok && re.MatchString(problem)
	}
}

var entry = regexp.MustCompile(`profiles\[\d+\]\.pluginConfig\[\d+\]`)

func ownSettings(difference string, plugins map[string]string) bool {
	own := strings.HasPrefix(difference, kumikiAlone) || strings.HasPrefix(difference, upstreamSilent)
	return own && plugins[entry.FindString(difference)] == "Kumiki"
}

func fitArguments(difference string, plugins map[string]string) bool {
	return strings.HasPrefix(difference, kumikiAlone) && plugins[entry.FindString(difference)] == "NodeResourcesFit"
}
