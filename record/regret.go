// SPDX-License-Identifier: Apache-2.0

package record

// RegretCause is why a node was chosen although another one has a better score.
type RegretCause string

// The causes. Their parts of a decision's regret add up to it.
const (
	// RegretWindow: the search did not consider all nodes, by the profile's strategy.
	RegretWindow RegretCause = "window"
	// RegretPreferred: all nodes were considered, and something comes before scores: a nominated node, or the places of
	// a whole gang.
	RegretPreferred RegretCause = "preferred"
	// RegretTie: of the nodes with the same score, the draw chose one that had a worse score at the end.
	RegretTie RegretCause = "tie"
	// RegretStaleness: changes that were not known to the decision gave another node a better score.
	RegretStaleness RegretCause = "staleness"
)

// RegretCauses are all causes, in the order in which they are shown.
var RegretCauses = []RegretCause{RegretWindow, RegretPreferred, RegretTie, RegretStaleness}

// Regret is by how much the nodes that a scheduler chose score below the best ones. The best node of a decision is that
// of a search over all nodes on the newest state: the state of the decision, with what the watch brought before the
// outcome of the bind was known, and without other decisions of the scheduler.
type Regret struct {
	// Decisions placed a pod, or a gang of which one pod is compared. Judged are those that were compared.
	//
	// Invariant: Decisions = Judged + Conflicts + the sum of Skipped.
	Decisions int `json:"decisions"`
	Judged    int `json:"judged"`
	// Conflicts are decisions that came to nothing: the bind was refused, or the node did not fit any more.
	Conflicts int `json:"conflicts"`
	// Skipped counts the decisions that were not compared, by the reason.
	Skipped []RegretSkipped `json:"skipped,omitempty"`
	// WithRegret is the number of Judged that have some. Sum adds up the regret, Best the best scores of all Judged.
	WithRegret int           `json:"withRegret"`
	Sum        int64         `json:"sum"`
	Best       int64         `json:"best"`
	Causes     []RegretShare `json:"causes"`
	// Worst are the decisions with the most regret, the worst first.
	Worst []RegretExample `json:"worst,omitempty"`
}

// RegretSkipped is why decisions were not compared.
type RegretSkipped struct {
	Why       string `json:"why"`
	Decisions int    `json:"decisions"`
}

// RegretShare is the part of one cause.
type RegretShare struct {
	Cause     RegretCause `json:"cause"`
	Decisions int         `json:"decisions"` // with this cause among theirs
	Sum       int64       `json:"sum"`
	Max       int64       `json:"max"`
}

// RegretExample is one decision.
type RegretExample struct {
	Decision uint64 `json:"decision"`
	Pod      PodRef `json:"pod"`
	Node     string `json:"node"`
	Total    int64  `json:"total"`
	Best     string `json:"best"`
	BestHas  int64  `json:"bestHas"`
	// Causes has the parts, which add up to BestHas-Total.
	Causes map[RegretCause]int64 `json:"causes"`
}
