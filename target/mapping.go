package target

// Mapping says which target the deliveries for an ARN go to.
//
// The limits are an ARN's. Those that a pattern fits may be different places, such as queues, and one that is slow or dead does not delay the others: so each has a lane of its
// own, with these limits for itself, and the target is called for several ARNs at once. Only of more than 1000 busy lanes some share one.
type Mapping struct {
	ARN    string // an ARN, or a pattern in which "*" stands for any characters: "arn:aws:lambda:*:*:function:resize-*"
	Target Target
	Limits Limits // of each ARN
	Name   string // of the lane in metrics and messages; default: the ARN
}
