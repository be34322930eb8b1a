package dynamo

// Code is the name of an error of the API, without its namespace: "ValidationException".
type Code string

// The codes of mayfly's answers (docs/spec/errors.md §3). Package wire maps them to JSON namespaces
// and HTTP statuses.
const (
	CodeValidation             Code = "ValidationException"
	CodeSerialization          Code = "SerializationException"
	CodeUnknownOperation       Code = "UnknownOperationException"
	CodeConditionalCheckFailed Code = "ConditionalCheckFailedException"
	CodeDuplicateItem          Code = "DuplicateItemException"
	CodeResourceNotFound       Code = "ResourceNotFoundException"
	CodeResourceInUse          Code = "ResourceInUseException"
	CodeTableNotFound          Code = "TableNotFoundException"
	CodeTableAlreadyExists     Code = "TableAlreadyExistsException"
	CodeTableInUse             Code = "TableInUseException"
	CodeBackupNotFound         Code = "BackupNotFoundException"
	CodeBackupInUse            Code = "BackupInUseException"
	CodeContinuousBackups      Code = "ContinuousBackupsUnavailableException"
	CodePointInTimeRecovery    Code = "PointInTimeRecoveryUnavailableException"
	CodeInvalidRestoreTime     Code = "InvalidRestoreTimeException"
	CodeInvalidExportTime      Code = "InvalidExportTimeException"
	CodeExportNotFound         Code = "ExportNotFoundException"
	CodeExportConflict         Code = "ExportConflictException"
	CodeImportNotFound         Code = "ImportNotFoundException"
	CodeImportConflict         Code = "ImportConflictException"
	CodeCollectionSize         Code = "ItemCollectionSizeLimitExceededException"
	CodeGlobalTableNotFound    Code = "GlobalTableNotFoundException"
	CodeLimitExceeded          Code = "LimitExceededException"
	CodePolicyNotFound         Code = "PolicyNotFoundException"
	CodeTransactionCanceled    Code = "TransactionCanceledException"
	CodeTransactionConflict    Code = "TransactionConflictException"
	CodeTransactionInProgress  Code = "TransactionInProgressException"
	CodeIdempotentMismatch     Code = "IdempotentParameterMismatchException"
	CodeExpiredIterator        Code = "ExpiredIteratorException"
	CodeTrimmedDataAccess      Code = "TrimmedDataAccessException"
	CodeThrottling             Code = "ThrottlingException"
	CodeThroughputExceeded     Code = "ProvisionedThroughputExceededException"
	CodeRequestLimitExceeded   Code = "RequestLimitExceeded"
	CodeInternal               Code = "InternalServerError"
	CodeUnavailable            Code = "ServiceUnavailable"
	CodeMissingAuthToken       Code = "MissingAuthenticationTokenException"
	CodeIncompleteSignature    Code = "IncompleteSignatureException"
	CodeInvalidSignature       Code = "InvalidSignatureException"
	CodeUnrecognizedClient     Code = "UnrecognizedClientException"
	CodeExpiredToken           Code = "ExpiredTokenException"
	CodeAccessDenied           Code = "AccessDeniedException"
)

// Error is an error that the DynamoDB API defines. Code and message are part of the wire contract.
type Error struct {
	Code    Code
	Message string   // empty: the body has no message member
	Item    Item     // ConditionalCheckFailed: the stored item, if the caller asked for it
	Reasons []Reason // TransactionCanceled: one for each action, in their order
	// ThroughputExceeded, Throttling of items: what was exceeded
	Throttled []ThrottlingReason
	Value     ValueFault // the class of an invalid attribute value
}

// ValueFault is a class of errors of attribute values. Operations word all errors of a class alike.
type ValueFault uint8

// The classes of ValueFault. FaultOther also covers all other errors.
const (
	FaultOther ValueFault = iota // no data type, two data types, too many levels
	// a false NULL, an empty SS or BS, a null element of one, an empty or too long attribute name
	FaultContent
	FaultSet    // duplicates in a set, or an empty number set
	FaultNumber // not a number, too precise or out of range
)

// ThrottlingReason is a limit that a request exceeded.
type ThrottlingReason struct {
	Reason   string // "TableWriteProvisionedThroughputExceeded"
	Resource string // the ARN of the table or index
}

// Reason is the part of one action of a transaction in its cancellation.
type Reason struct {
	Code    string // "None", "ConditionalCheckFailed", "ValidationError", …
	Message string // empty for None
	Item    Item   // the stored item, if the action asked for it
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Invalid returns a ValidationException with this text.
func Invalid(message string) *Error { return &Error{Code: CodeValidation, Message: message} }

func invalidValue(f ValueFault, message string) *Error {
	return &Error{Code: CodeValidation, Message: message, Value: f}
}
