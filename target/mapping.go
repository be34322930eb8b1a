package target

// Mapping maps an ARN, or all ARNs of a pattern, to a target.
//
// The limits apply to each ARN. The ARNs of a pattern may be different places, such as queues, and
// a slow or dead one does not delay the others. So each has a lane of its own with these limits,
// and the target is called for several ARNs at once. Beyond 1000 busy lanes, some ARNs share one.
type Mapping struct {
	// an ARN, or a pattern in which "*" stands for any characters:
	// "arn:aws:lambda:*:*:function:resize-*"
	ARN    string
	Target Target
	Limits Limits // of each ARN
	Name   string // of the lane in metrics and messages. Default: the ARN
}
