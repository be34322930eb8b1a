package wire

import (
	"github.com/mayflydb/mayfly/internal/store/dynamo"
	"github.com/mayflydb/mayfly/internal/store/service"
)

func encodeExecuteStatement(w *writer, out *service.ExecuteStatementOutput) {
	w.name("Items")
	encodeItemList(w, out.Items)
	w.optionalText("NextToken", out.NextToken)
	w.optionalItem("LastEvaluatedKey", out.LastEvaluatedKey)
	encodeCapacity(w, out.Capacity)
}

func encodeBatchExecuteStatement(w *writer, out *service.BatchExecuteStatementOutput) {
	objects(w.name("Responses"), out.Responses, encodeStatementResponse)
	encodeCapacities(w, out.Capacity)
}

func encodeStatementResponse(w *writer, r *service.StatementResponse) {
	if r.Code != "" {
		w.name("Error").beginObject()
		w.name("Code").text(r.Code)
		w.optionalText("Message", r.Message)
		w.optionalItem("Item", r.FailedItem)
		w.endObject()
	}
	w.optionalText("TableName", r.TableName)
	w.optionalItem("Item", r.Item)
}

func encodeExecuteTransaction(w *writer, out *service.ExecuteTransactionOutput) {
	objects(w.name("Responses"), out.Responses, func(w *writer, it *dynamo.Item) { w.optionalItem("Item", *it) })
	encodeCapacities(w, out.Capacity)
}
