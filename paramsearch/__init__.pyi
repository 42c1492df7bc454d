from accounting.base.errors import Undecided as Undecided
from accounting.base.errors import Violated as Violated
from paramsearch.certification.audit import Audit as Audit
from paramsearch.certification.audit import audit as audit
from paramsearch.certification.certify import certify as certify
from paramsearch.generation.generate import Generated as Generated
from paramsearch.generation.generate import generate as generate
from paramsearch.parameters.assembly import rescaled as rescaled
from paramsearch.parameters.assembly import uncertified as uncertified
from paramsearch.parameters.claim import Claim as Claim
from paramsearch.parameters.documents import RejectedFile as RejectedFile
from paramsearch.parameters.documents import read as read
from paramsearch.parameters.documents import read_source as read_source
from paramsearch.parameters.parameter_file import ParameterFile as ParameterFile
from paramsearch.parameters.parameter_file import load as load
from paramsearch.parameters.parameter_file import save as save
from paramsearch.request import Request as Request
from paramsearch.tables.lookup import Found as Found
from paramsearch.tables.lookup import Query as Query
from paramsearch.tables.lookup import Table as Table

__version__: str
